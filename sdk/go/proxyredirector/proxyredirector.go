// Package proxyredirector is for plugins that configure the program on the host that sends the device's connections
// through a proxy: the action proxy-redirector, which the device calls for PATCH /v1/device/host-config, and other
// plugins may call. A provider is a type that proxy-redirector in [provides] of plugin.toml names:
//
//	type redirector struct{}
//
//	func (redirector) Get() (proxyredirector.State, error)           { return proxyredirector.Direct{}, nil }
//	func (redirector) Set(target *proxyredirector.Redirection) error { return nil }
//	func (redirector) NoProxy() ([]string, error)                    { return []string{"10.0.0.0/8"}, nil }
//	func (redirector) SetNoProxy(addresses []string) error           { return nil }
//	func (redirector) Apply() error                                  { return nil }
//
// Each call runs in a fresh instance of the plugin, and runs to its end even if its caller has disconnected. Return
// supervisor.BadRequest if a value cannot be configured; its text names the value. The text of any other error says
// what could not be read, written or applied.
package proxyredirector

import "fmt"

// ProxyKind is the protocol of a proxy.
type ProxyKind string

const (
	Socks4      ProxyKind = "socks4"
	Socks5      ProxyKind = "socks5"
	HTTPConnect ProxyKind = "http-connect" // The method CONNECT of HTTP.
	HTTPRelay   ProxyKind = "http-relay"   // HTTP requests only, with absolute addresses.
)

// Proxy is the proxy that receives the connections. Its text does not show the password.
type Proxy struct {
	Kind     ProxyKind
	Address  string // An IPv4 address or a host name.
	Port     uint16 // 1 to 65535.
	Login    string // Like the password, without control characters; empty if there is none.
	Password string // Empty if there is none.
}

// String returns the proxy without its password.
func (p Proxy) String() string {
	return fmt.Sprintf("%s://%s:%d", p.Kind, p.Address, p.Port)
}

// DNSRemote is a name server that is queried over TCP, and so through the proxy.
type DNSRemote struct {
	Address string // An IPv4 address or a host name.
	Port    uint16 // 1 to 65535.
}

// Redirection says where connections are sent, and optionally the queries for names.
type Redirection struct {
	Proxy Proxy
	DNS   *DNSRemote // nil if names are not resolved through the proxy.
}

// State is the configuration of the device's proxy: Direct, Unusable or Redirection.
type State interface{ isState() }

// Direct says that connections are not redirected.
type Direct struct{}

// Unusable says that there is a configuration that names no usable proxy.
type Unusable struct {
	Reason string // What is wrong with it.
}

func (Direct) isState()      {}
func (Unusable) isState()    {}
func (Redirection) isState() {}

// Provider is what a plugin implements.
type Provider interface {
	// Get returns the present configuration.
	Get() (State, error)
	// Set writes the configuration, or removes it if target is nil, completely or not at all. It keeps other settings
	// as long as there is a configuration. It takes effect with Apply.
	Set(target *Redirection) error
	// NoProxy returns the addresses and subnets that are reached without the proxy.
	NoProxy() ([]string, error)
	// SetNoProxy replaces these addresses and subnets. It takes effect with Apply.
	SetNoProxy(addresses []string) error
	// Apply makes the redirector use what was written. Open connections may stay as they are.
	Apply() error
}

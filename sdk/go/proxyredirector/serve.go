package proxyredirector

import (
	"errors"
	"fmt"
	"slices"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
	"supervisor"
	wit "supervisor/imports/platform_supervisor_proxy_types"
	"supervisor/internal/panics"
	"supervisor/internal/validtext"
)

var provider Provider

// The kinds, by their numbers in the interface.
var kinds = []ProxyKind{Socks4, Socks5, HTTPConnect, HTTPRelay}

// Serve sets the provider. Used by the file that the build writes from plugin.toml.
func Serve(value Provider) {
	provider = value
}

// HandleGet returns the present configuration. This function and those below are used by the package that the component
// exports.
func HandleGet() witTypes.Result[wit.ProxyState, wit.ProxyError] {
	defer panics.Log()
	state, err := provider.Get()
	if err != nil {
		return witTypes.Err[wit.ProxyState, wit.ProxyError](errorOf(err))
	}
	return witTypes.Ok[wit.ProxyState, wit.ProxyError](stateOf(state))
}

// HandleSet writes or removes the configuration.
func HandleSet(target witTypes.Option[wit.Redirection]) witTypes.Result[witTypes.Unit, wit.ProxyError] {
	return perform(func() error {
		if target.IsNone() {
			return provider.Set(nil)
		}
		redirection := redirectionOf(target.Some())
		return provider.Set(&redirection)
	})
}

// HandleNoProxy returns the addresses and subnets that are reached without the proxy.
func HandleNoProxy() witTypes.Result[[]string, wit.ProxyError] {
	defer panics.Log()
	addresses, err := provider.NoProxy()
	if err != nil {
		return witTypes.Err[[]string, wit.ProxyError](errorOf(err))
	}
	return witTypes.Ok[[]string, wit.ProxyError](validtext.All(addresses))
}

// HandleSetNoProxy replaces these addresses and subnets.
func HandleSetNoProxy(addresses []string) witTypes.Result[witTypes.Unit, wit.ProxyError] {
	return perform(func() error { return provider.SetNoProxy(addresses) })
}

// HandleApply makes the redirector use what was written.
func HandleApply() witTypes.Result[witTypes.Unit, wit.ProxyError] { return perform(provider.Apply) }

func perform(step func() error) witTypes.Result[witTypes.Unit, wit.ProxyError] {
	defer panics.Log()
	if err := step(); err != nil {
		return witTypes.Err[witTypes.Unit, wit.ProxyError](errorOf(err))
	}
	return witTypes.Ok[witTypes.Unit, wit.ProxyError](witTypes.Unit{})
}

// The case "unavailable" means that there is no provider.
func errorOf(err error) wit.ProxyError {
	text := validtext.Of(err.Error())
	var refusal *supervisor.Error
	if errors.As(err, &refusal) && refusal.Status == 400 {
		return wit.MakeProxyErrorInvalid(text)
	}
	return wit.MakeProxyErrorOther(text)
}

func redirectionOf(target wit.Redirection) Redirection {
	proxy := target.Proxy
	redirection := Redirection{Proxy: Proxy{
		Kind:     kinds[proxy.Kind],
		Address:  proxy.Address,
		Port:     proxy.Port,
		Login:    proxy.Login.SomeOr(""),
		Password: proxy.Password.SomeOr(""),
	}}
	if target.Dns.IsSome() {
		dns := target.Dns.Some()
		redirection.DNS = &DNSRemote{dns.Address, dns.Port}
	}
	return redirection
}

func stateOf(state State) wit.ProxyState {
	switch state := state.(type) {
	case Direct:
		return wit.MakeProxyStateDirect()
	case Unusable:
		return wit.MakeProxyStateUnusable(validtext.Of(state.Reason))
	case Redirection:
		return wit.MakeProxyStateRedirected(witRedirectionOf(state))
	default:
		panic(fmt.Sprintf("Get of the provider of `proxy-redirector` returned a %T, which is not a Direct, Unusable or Redirection", state))
	}
}

func witRedirectionOf(redirection Redirection) wit.Redirection {
	proxy := redirection.Proxy
	kind := slices.Index(kinds, proxy.Kind)
	if kind < 0 {
		panic(fmt.Sprintf("the kind of a proxy is %q, which is not one of %q", proxy.Kind, kinds))
	}
	dns := witTypes.None[wit.DnsRemote]()
	if remote := redirection.DNS; remote != nil {
		dns = witTypes.Some(wit.DnsRemote{Address: validtext.Of(remote.Address), Port: remote.Port})
	}
	return wit.Redirection{
		Proxy: wit.Proxy{
			Kind:     wit.ProxyKind(kind),
			Address:  validtext.Of(proxy.Address),
			Port:     proxy.Port,
			Login:    option(proxy.Login),
			Password: option(proxy.Password),
		},
		Dns: dns,
	}
}

func option(text string) witTypes.Option[string] {
	if text == "" {
		return witTypes.None[string]()
	}
	return witTypes.Some(validtext.Of(text))
}

// Package export_platform_supervisor_proxy_redirector has the component's exports, where the generated bindings expect them.
package export_platform_supervisor_proxy_redirector

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"
	wit "supervisor/imports/platform_supervisor_proxy_types"
	"supervisor/proxyredirector"
)

func Get() witTypes.Result[wit.ProxyState, wit.ProxyError] {
	return proxyredirector.HandleGet()
}

func Set(target witTypes.Option[wit.Redirection]) witTypes.Result[witTypes.Unit, wit.ProxyError] {
	return proxyredirector.HandleSet(target)
}

func NoProxy() witTypes.Result[[]string, wit.ProxyError] {
	return proxyredirector.HandleNoProxy()
}

func SetNoProxy(addresses []string) witTypes.Result[witTypes.Unit, wit.ProxyError] {
	return proxyredirector.HandleSetNoProxy(addresses)
}

func Apply() witTypes.Result[witTypes.Unit, wit.ProxyError] {
	return proxyredirector.HandleApply()
}

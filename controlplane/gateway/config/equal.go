package config

import (
	"reflect"
	"slices"
)

// Equal reports whether two routes say the same. Unset and empty lists are equal,
// but for the origins of CORS, where none means that the product's do not count.
//
// Documents have thousands of routes, of which an edit changes one: this is ten
// times as fast as reflection.
func (r Route) Equal(o Route) bool {
	return r.Name == o.Name && r.Listener == o.Listener && r.Path == o.Path && r.Product == o.Product &&
		r.Scope == o.Scope && r.Class == o.Class && r.Feature == o.Feature && r.Price == o.Price &&
		r.ForwardCredentials == o.ForwardCredentials && r.ForwardCertificate == o.ForwardCertificate && r.Streaming == o.Streaming && r.ChatCaps == o.ChatCaps &&
		r.Timeout == o.Timeout && r.BodyLimit == o.BodyLimit &&
		r.Lifetime == o.Lifetime && slices.Equal(r.Upgrades, o.Upgrades) &&
		slices.Equal(r.Methods, o.Methods) && slices.Equal(r.Auth, o.Auth) && slices.Equal(r.Hosts, o.Hosts) &&
		slices.Equal(r.Headers, o.Headers) && equalAt(r.Rewrite, o.Rewrite) && equalAt(r.Respond, o.Respond) &&
		(r.CORS == o.CORS || reflect.DeepEqual(r.CORS, o.CORS)) && r.Validate == o.Validate && slices.Equal(r.Shadow, o.Shadow) && equalCache(r.Cache, o.Cache) && r.Request.Equal(o.Request) &&
		r.equalTraffic(o)
}

// equalTraffic is Equal for what few routes say.
func (r Route) equalTraffic(o Route) bool {
	return r.Sticky == o.Sticky && r.Compress == o.Compress && equalAt(r.Redirect, o.Redirect) &&
		(len(r.Split)+len(o.Split) == 0 || reflect.DeepEqual(r.Split, o.Split)) &&
		(r.Mirror == o.Mirror || reflect.DeepEqual(r.Mirror, o.Mirror)) && (r.Retries == o.Retries || reflect.DeepEqual(r.Retries, o.Retries)) &&
		(r.RequestHeaders == o.RequestHeaders || reflect.DeepEqual(r.RequestHeaders, o.RequestHeaders)) &&
		(r.ResponseHeaders == o.ResponseHeaders || reflect.DeepEqual(r.ResponseHeaders, o.ResponseHeaders))
}

// equalAt compares what two pointers lead to.
func equalAt[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Equal reports whether two documents say the same, in the same order.
func (d Document) Equal(o Document) bool {
	shared := len(d.Routes) == len(o.Routes) && len(d.Routes) > 0 && &d.Routes[0] == &o.Routes[0]
	if !shared && !slices.EqualFunc(d.Routes, o.Routes, Route.Equal) {
		return false
	}
	d.Routes, o.Routes = nil, nil
	return reflect.DeepEqual(d, o)
}

// differing returns the routes of two lists without those that both begin with, and
// without those that both end with: hardly any, where one route was edited.
func differing(a, b []Route) (x, y []Route) {
	for len(a) > 0 && len(b) > 0 && a[0].Equal(b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1].Equal(b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b
}

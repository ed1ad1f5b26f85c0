package product

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// dialTimeout is how long a product may take to take a connection before the
// next one is tried.
const dialTimeout = time.Second

// FirstOf returns a client whose calls go to the first of several equal products,
// host:port each, that takes the connection, whatever host their URLs name.
func FirstOf(addrs []string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var errs []error
		for _, addr := range addrs {
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, addr)
			if err == nil {
				return conn, nil
			}
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}
	return &http.Client{Transport: transport}
}

package outbound

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// maxSent bounds the body of a request by RoundTrip.
const maxSent = 1 << 20

// RoundTrip implements http.RoundTripper, for libraries that want an http.Client: it is
// Do, and an answer that is longer than Config.MaxBody is an error.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxSent+1)); err != nil {
			return nil, err
		}
		if len(body) > maxSent {
			return nil, fmt.Errorf("the request has more than %d bytes", maxSent)
		}
	}
	res, err := c.Do(r.Context(), Request{Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: body})
	if err != nil {
		return nil, err
	}
	if res.Truncated {
		return nil, fmt.Errorf("the answer has more than %d bytes", c.config.MaxBody)
	}
	return &http.Response{
		Status: http.StatusText(res.Status), StatusCode: res.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: res.Header, Body: io.NopCloser(bytes.NewReader(res.Body)), ContentLength: int64(len(res.Body)), Request: r,
	}, nil
}

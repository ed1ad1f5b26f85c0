package sluice

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// call is one operation with what it is given.
type call struct {
	method, path string
	query        url.Values
	body         any       // sent as JSON; nil: none
	contentType  string    // of stream
	stream       io.Reader // sent as it is, once; nil: none
	once         bool      // it takes an Idempotency-Key
	chat         bool      // it goes to the chat runtime
	accept       string    // empty: application/json
	whole        bool      // the answer is read before the call is done
}

// Do calls a path that this package has no method for, such as one of your own API behind
// the gateway, with the credential, retries and errors of every other call. body is sent as
// JSON; an io.Reader as it is, with a Content-Type by [WithHeader]; nil sends none. A POST
// is repeated if it has an [IdempotencyKey]. The caller closes the answer's body.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body any, opts ...CallOption) (*http.Response, error) {
	r := call{method: method, path: path, query: query, body: body, accept: "*/*"}
	if stream, ok := body.(io.Reader); ok {
		r.body, r.stream, r.contentType = nil, stream, "application/octet-stream"
	}
	return c.do(ctx, r, opts)
}

// answer makes a call and reads its JSON.
func answer[T any](ctx context.Context, c *Client, r call, opts []CallOption) (T, error) {
	var v, none T
	r.whole = true
	res, err := c.do(ctx, r, opts)
	if err != nil {
		return none, err
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		return none, fmt.Errorf("answer of %s %s: %w", r.method, r.path, err)
	}
	return v, nil
}

// none makes a call that answers nothing.
func (c *Client) none(ctx context.Context, r call, opts []CallOption) error {
	r.whole = true
	_, err := c.do(ctx, r, opts)
	return err
}

// do makes a call, again where that is safe and may help, and returns its success; of a
// failure the *Error.
func (c *Client) do(ctx context.Context, r call, opts []CallOption) (*http.Response, error) {
	header := http.Header{"Authorization": {"Bearer " + c.key}, "User-Agent": {c.agent}, "Accept": {"application/json"}}
	if r.accept != "" {
		header.Set("Accept", r.accept)
	}
	body, err := r.encoded(header)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(header)
	}
	if r.once && header.Get("Idempotency-Key") == "" {
		header.Set("Idempotency-Key", rand.Text())
	}
	for t := newTry(c, r, header); ; {
		res, err := c.send(ctx, r, header, body)
		if err == nil && res.StatusCode < http.StatusBadRequest {
			return res, nil
		}
		if err == nil {
			err = refusal(res)
		}
		switch t.failed(ctx, err) {
		case gone:
			return &http.Response{Status: "204 No Content", StatusCode: http.StatusNoContent, Header: res.Header, Body: http.NoBody, Request: res.Request}, nil
		case final:
			return nil, err
		}
	}
}

// encoded is the body as it is sent, if it can be sent again.
func (r call) encoded(header http.Header) ([]byte, error) {
	if r.stream != nil {
		header.Set("Content-Type", r.contentType)
		return nil, nil
	}
	if r.body == nil {
		return nil, nil
	}
	header.Set("Content-Type", "application/json")
	return json.Marshal(r.body)
}

func (c *Client) send(ctx context.Context, r call, header http.Header, body []byte) (*http.Response, error) {
	base := c.base
	if r.chat {
		base = c.runtime
	}
	address := base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	from := r.stream
	if from == nil && body != nil {
		from = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, from)
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	res, err := c.http.Do(req)
	if err != nil || !r.whole || res.StatusCode >= http.StatusBadRequest {
		return res, err
	}
	return read(res)
}

// maxAnswer bounds an answer that is not given as a stream, in bytes.
const maxAnswer = 64 << 20

// read is res with its whole body in memory: one that breaks off is a failure of the
// connection like any other.
func read(res *http.Response) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("sluice: the answer has more than %d bytes", maxAnswer)
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

// given is body, or nil where a nil pointer was given.
func given[T any](body *T) any {
	if body == nil {
		return nil
	}
	return body
}

// path fills in the variables of a path.
func path(format string, values ...string) string {
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = url.PathEscape(v)
	}
	return fmt.Sprintf(format, escaped...)
}

// query is what the fields of params say that are not zero.
func query[T any](params *T) url.Values {
	if params == nil {
		return nil
	}
	values, v := url.Values{}, reflect.ValueOf(params).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Tag.Get("query")
		if f.IsZero() {
			continue
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		switch f.Kind() {
		case reflect.String:
			values.Set(name, f.String())
		case reflect.Int:
			values.Set(name, strconv.FormatInt(f.Int(), 10))
		case reflect.Float64:
			values.Set(name, strconv.FormatFloat(f.Float(), 'f', -1, 64))
		case reflect.Bool:
			values.Set(name, strconv.FormatBool(f.Bool()))
		default: // []string
			list, _ := f.Interface().([]string)
			values.Set(name, strings.Join(list, ","))
		}
	}
	return values
}

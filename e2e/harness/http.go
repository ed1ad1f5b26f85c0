package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Answer is one that was read whole.
type Answer struct {
	*http.Response
	Text []byte
}

// Ask makes a request with a bearer credential ("" for none) and a JSON body (nil
// for none); headers are further ones: name, value, and so on.
func Ask(ctx context.Context, c *http.Client, method, url, credential string, body any, headers ...string) (a Answer, err error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return a, err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return a, err
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.Response = res
	a.Text, err = io.ReadAll(a.Body)
	return a, err
}

// Into decodes an answer into v, unless that is nil. An answer that does not say
// success is an error.
func (a Answer) Into(v any) error {
	if a.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.Text)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(a.Text, v)
}

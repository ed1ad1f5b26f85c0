package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/internal/app"
)

// callTimeout bounds one call of the admin API.
const callTimeout = 30 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 16 << 20

// client calls one of the APIs.
type client struct {
	base string // without a trailing slash
	key  string
	http *http.Client
	name string // of the API, for errors; "": the admin API
}

// endpoint is one of the APIs: where it is and the key for it, as variables say it.
type endpoint struct{ name, url, key string }

var (
	toAdmin   = endpoint{"the admin API", "SLUICE_ADMIN_URL", "SLUICE_ADMIN_KEY"}
	toGateway = endpoint{"the gateway", "SLUICE_GATEWAY_URL", "SLUICE_API_KEY"}
)

// newClient calls the admin API.
func newClient(env app.Environment) (client, error) { return toAdmin.client(env) }

// client uses the endpoint's variables; what is unset comes from the local stack's dev.env.
func (e endpoint) client(env app.Environment) (client, error) {
	base, key := env.Get(e.url), env.Get(e.key)
	if base == "" || key == "" {
		name := filepath.Join(env.Get("SLUICE_STATE_DIR"), "dev.env")
		local, err := app.ReadEnvFile(name)
		if err != nil {
			return client{}, err
		}
		base, key = cmp.Or(base, local[e.url]), cmp.Or(key, local[e.key])
		if base == "" || key == "" {
			return client{}, fmt.Errorf("set %s and %s, run `sluice login`, or start a local stack with `sluice up`: %s does not name them", e.url, e.key, name)
		}
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return client{}, fmt.Errorf("%s is not an http:// or https:// address", e.url)
	}
	return client{strings.TrimRight(base, "/"), key, &http.Client{Timeout: callTimeout}, e.name}, nil
}

// do calls the admin API with body as JSON (nil: none) and returns the answer's
// body. An answer that is not 2xx is an error in its own words.
func (c client) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	return c.doIf(ctx, method, path, body, config.Any)
}

// doIf is do, if the configuration is at a version.
func (c client) doIf(ctx context.Context, method, path string, body any, version int64) ([]byte, error) {
	match := ""
	if version != config.Any {
		match = fmt.Sprintf("%q", fmt.Sprint(version))
	}
	answer, _, err := c.doMatch(ctx, method, path, body, match)
	return answer, err
}

// doMatch is do, if what is at the path has the tag match, unless that is empty. It
// returns the tag that it has.
func (c client) doMatch(ctx context.Context, method, path string, body any, match string) (answer []byte, tag string, err error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, "", err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if c.name == toGateway.name {
			return nil, "", fmt.Errorf("%s at %s does not answer: is an edge running? (%w)", c.name, c.base, errors.Unwrap(err))
		}
		return nil, "", fmt.Errorf("the admin API at %s does not answer: is the control plane running? (%w)", c.base, errors.Unwrap(err))
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, "", fmt.Errorf("read the answer of %s: %w", c.of(), err)
	}
	if res.StatusCode/100 != 2 {
		return nil, "", refused{res.StatusCode, refusal(c.of(), res.StatusCode, answer)}
	}
	return answer, res.Header.Get("ETag"), nil
}

// refused is an answer that is not 2xx.
type refused struct {
	status int
	error
}

// optional reads what is at a path; nil: nothing.
func (c client) optional(ctx context.Context, path string) ([]byte, error) {
	answer, err := c.do(ctx, http.MethodGet, path, nil)
	if r, ok := errors.AsType[refused](err); ok && r.status == http.StatusNotFound {
		return nil, nil
	}
	return answer, err
}

// of is the name of the API.
func (c client) of() string { return cmp.Or(c.name, toAdmin.name) }

// refusal is the error envelope: in one line what is wrong, then where to look.
func refusal(api string, status int, answer []byte) error {
	var e struct {
		Error struct {
			Code, Message string
			Details       []struct{ Field, Issue, Expected string }
			Request       string `json:"request_id"`
			Docs          string `json:"documentation_url"`
		}
	}
	if json.Unmarshal(answer, &e) != nil || e.Error.Code == "" {
		return fmt.Errorf("%s answered %d", api, status)
	}
	text := fmt.Sprintf("%s (%s)", strings.TrimSuffix(e.Error.Message, "."), e.Error.Code)
	for _, d := range e.Error.Details {
		text += "; " + d.Field + " " + d.Issue
		if d.Expected != "" {
			text += ": expected " + d.Expected
		}
	}
	if decision.Code(e.Error.Code) == decision.RouteNotMapped && api == toGateway.name {
		text += ": this platform does not serve it, as one with the profile gateway has no media and no schedules"
	}
	if e.Error.Request != "" {
		text += "\n  request  " + e.Error.Request
	}
	if e.Error.Docs != "" {
		text += "\n  docs     " + e.Error.Docs
	}
	return errors.New(text)
}

// get reads what is at one path.
func get(ctx context.Context, env app.Environment, path string) ([]byte, error) {
	c, err := newClient(env)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, http.MethodGet, path, nil)
}

// account returns the account to act on: the one given, else that of the key.
func (c client) account(ctx context.Context, given string) (string, error) {
	if given != "" {
		return url.PathEscape(given), nil
	}
	answer, err := c.do(ctx, http.MethodGet, "/admin/v1/self", nil)
	if err != nil {
		return "", err
	}
	var self struct {
		Account string `json:"account"`
	}
	if err := json.Unmarshal(answer, &self); err != nil || self.Account == "" {
		return "", errors.New("the admin API does not say whose the key is: give --account")
	}
	return self.Account, nil
}

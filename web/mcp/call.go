package mcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/web/mcp/toolset"
)

const (
	// via marks the requests of tools, so that none calls another (RFC 9110
	// section 7.6.3).
	via = "sluice-mcp"
	// timeout bounds one call of a tool.
	timeout = 30 * time.Second
	// maxAnswer bounds what a tool reads of an answer, in bytes.
	maxAnswer = 4 << 20
)

// forwarded are the headers of the message that go along with the tool's
// request: who calls, and to which trace the call belongs.
var forwarded = []string{"Authorization", "Traceparent", "Tracestate"}

// newClient returns a client for the gateway alone: it follows no redirect and
// asks no proxy.
func newClient(trust *tls.Config) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{TLSClientConfig: trust, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// handler runs a tool. What the operation refuses is the tool's result, so that
// the agent can read it and do better.
func (c Config) handler(t toolset.Tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		header := http.Header{}
		if req.Extra != nil {
			header = req.Extra.Header
		}
		if choiceOf(ctx).readOnly && !t.ReadOnly() {
			return failed("This connection is for reading only: " + t.Name + " changes something."), nil
		}
		wanted, faults := t.Request(req.Params.Arguments)
		if len(faults) > 0 {
			return refused(faults)
		}
		httpReq, err := http.NewRequestWithContext(ctx, wanted.Method, strings.TrimSuffix(c.Gateway, "/")+wanted.Target, bytes.NewReader(wanted.Body))
		if err != nil {
			return nil, fmt.Errorf("make request: %w", err)
		}
		for _, name := range forwarded {
			if v := header.Values(name); len(v) > 0 {
				httpReq.Header[name] = v
			}
		}
		for name, v := range wanted.Header {
			httpReq.Header[name] = v
		}
		c.Identity.Vouch(httpReq.Header, header)
		httpReq.Header.Set("Via", "1.1 "+via)
		httpReq.Header.Set("User-Agent", via+"/"+c.Version)
		httpReq.Header.Set("Accept", "application/json")
		return c.do(t, httpReq, wanted.Fields)
	}
}

// do calls the gateway and turns its answer into a tool's result.
func (c Config) do(t toolset.Tool, req *http.Request, fields []string) (*sdk.CallToolResult, error) {
	res, err := c.Client.Do(req)
	if err != nil {
		return failed("The gateway could not be reached."), nil //nolint:nilerr // its text may name inner addresses
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil || len(body) > maxAnswer {
		return failed(fmt.Sprintf("The answer broke off, or has more than %d bytes: ask for less at once.", maxAnswer)), nil //nolint:nilerr // said so
	}
	return result(t, res, body, fields)
}

// result is the tool's result for an answer.
func result(t toolset.Tool, res *http.Response, body []byte, fields []string) (*sdk.CallToolResult, error) {
	text := strings.TrimSpace(string(body))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		if wait := res.Header.Get("Retry-After"); wait != "" {
			text += "\nRetry after " + wait + " seconds."
		}
		return failed(fmt.Sprintf("HTTP %d: %s", res.StatusCode, text)), nil
	}
	if t.Empty {
		text = `{"done":true}`
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(text), Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
	return shown(t, body, fields)
}

// maxShown is about how much is shown of an answer, in bytes: some eight thousand tokens.
const maxShown = 32 << 10

// cutMember is the member of an object that says what is not shown of it.
const cutMember = "_cut"

// shown is what an agent is shown of an answer: the fields that it asked for, as far as
// there is room. What is left out is said in the object itself, or behind what is none.
func shown(t toolset.Tool, body []byte, fields []string) (*sdk.CallToolResult, error) {
	s, ok := toolset.Show(body, fields, maxShown)
	if !ok {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: cutText(strings.TrimSpace(string(body)), maxShown)}}}, nil
	}
	note, err := t.Note(s)
	if err != nil {
		return nil, fmt.Errorf("say what is cut: %w", err)
	}
	text, object := string(s.Text), s.Text[0] == '{'
	if note != nil && object {
		inner := strings.TrimSuffix(text, "}")
		if inner != "{" {
			inner += ","
		}
		text = inner + `"` + cutMember + `":` + string(note) + "}"
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	if object {
		out.StructuredContent = json.RawMessage(text)
	}
	if note != nil && !object {
		out.Content = append(out.Content, &sdk.TextContent{Text: `{"` + cutMember + `":` + string(note) + "}"})
	}
	return out, nil
}

// failed is the result of a call that came to nothing.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// refused is the result for arguments that make no request.
func refused(faults []decision.Detail) (*sdk.CallToolResult, error) {
	text, err := json.Marshal(map[string]any{"error": map[string]any{
		"code": decision.InvalidRequest, "message": decision.Lookup(decision.InvalidRequest).Message, "details": faults}})
	if err != nil {
		return nil, fmt.Errorf("write the faults: %w", err)
	}
	return failed(string(text)), nil
}

package hostile

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// attack is one way to take more than one's share.
type attack struct {
	name    string
	rarer   int // how many times rarer than the tenant's rate it is made
	request func(ctx context.Context, n int) (*http.Request, error)
}

// Sizes of what is sent.
const (
	blanks   = 16 << 10
	names    = 2000
	tools    = 100
	uploaded = 1 << 20
)

// attacks are those that the tenant makes. The costly are rarer.
func (t *Tenant) attacks() []attack {
	keyed := func(url, body string) func(context.Context, int) (*http.Request, error) {
		return func(ctx context.Context, _ int) (*http.Request, error) { return t.post(ctx, url, body, true) }
	}
	silent := fmt.Sprintf(`{"url":"%s/try"}`, t.Silent)
	connect := fmt.Sprintf(`{"base_url":"%s","api_token":"token"}`, t.Silent)
	fetch := fmt.Sprintf(`{"source_url":"%s/video.mp4"}`, t.Silent)
	blank := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + strings.Repeat(" ", blanks)
	repeated := `{` + strings.Repeat(`"":1,`, names) + `"":1}`
	chat := fmt.Sprintf(`{"model":"echo-1","max_tokens":4,"messages":[{"role":"user","content":"%s"}],"tools":[%s]}`,
		strings.Repeat("x", 4<<10), strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"f"}},`, tools), ","))
	all := []attack{
		{"trigger at a silent receiver", 1, t.trigger},
		{"POST with a key at a silent receiver", 1, keyed(t.Gateway+"/v1/webhooks/test", silent)},
		{"connect with a key to a silent provider", 2, keyed(t.Gateway+"/v1/migration/legacy/connect", connect)},
		{"video from a silent source", 10, keyed(t.Gateway+"/v1/vod", fetch)},
		{"upload of no video", 50, t.upload},
		{"blanks in a body", 50, keyed(t.Gateway+"/mcp", blank)},
		{"repeated names in a body", 20, keyed(t.Gateway+"/v1/events/schedules/preview", repeated)},
		{"bad token", 2, t.token},
		{"sign-in", 1, t.signIn},
	}
	if t.Runtime != "" {
		all = append(all, attack{"completion with many tools", 20, keyed(t.Runtime+"/v1/chat/completions", chat)})
	}
	return all
}

func (t *Tenant) trigger(ctx context.Context, n int) (*http.Request, error) {
	return t.post(ctx, t.Gateway+"/v1/events/schedules/"+t.schedules[n%len(t.schedules)]+"/trigger", "", false)
}

// upload sends what begins like a video and is none.
func (t *Tenant) upload(ctx context.Context, _ int) (*http.Request, error) {
	r, err := t.post(ctx, t.Gateway+"/v1/vod/upload", "\x00\x00\x00\x10ftypisom\x00\x00\x00\x00"+strings.Repeat("no video ", uploaded/9), false)
	if err == nil {
		r.Header.Set("Content-Type", "video/mp4")
	}
	return r, err
}

// token shows one that is long and was signed by nobody.
func (t *Tenant) token(ctx context.Context, n int) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Gateway+"/v1/streams", nil)
	if err != nil {
		return nil, err
	}
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	claims := fmt.Sprintf(`{"sub":"%d","pad":"%s"}`, n, strings.Repeat("x", 3<<10))
	r.Header.Set("Authorization", "Bearer "+part(`{"alg":"ES256","kid":"none","typ":"JWT"}`)+"."+part(claims)+"."+part(strings.Repeat("x", 64)))
	return r, nil
}

// signIn guesses a password, of people that are none.
func (t *Tenant) signIn(ctx context.Context, n int) (*http.Request, error) {
	r, err := t.post(ctx, t.Gateway+"/v1/auth/sessions", fmt.Sprintf(`{"email":"guess-%d@example.com","password":"a guess of a password"}`, n%50), false)
	if err == nil {
		r.Header.Del("Authorization")
	}
	return r, err
}

// Package legacy moves an account in from another provider: any HTTPS endpoint
// that answers as documented in docs/media.md, "Migration".
package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/filters/decision"
)

// pageSize is how many videos are asked for at a time.
const pageSize = 100

// Bounds of what a provider may say.
const (
	maxID     = 200
	maxCursor = 1000
)

// Video is a video as a provider describes it.
type Video struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`
	Duration    float64 `json:"duration"`     // seconds; 0: not told
	Size        int64   `json:"size"`         // bytes; 0: not told
	DownloadURL string  `json:"download_url"` // open to whoever has it
}

// Page is the answer of GET <base>/videos.
type Page struct {
	Videos     []Video `json:"videos"`
	NextCursor string  `json:"next_cursor"` // empty: the last page
}

// Webhook is one of the answer of GET <base>/webhooks.
type Webhook struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`
}

// Provider is a connection.
type Provider struct {
	Client  *outbound.Client
	BaseURL string // without a trailing slash
	Token   string
}

// Videos returns one page of the provider's videos. It fails with bad_gateway
// when the provider cannot be reached or answers something else, and with
// invalid_request on the field api_token when it refuses the token.
func (p Provider) Videos(ctx context.Context, cursor string, limit int) (Page, error) {
	q := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	raw, err := p.get(ctx, "/videos?"+q.Encode())
	if err != nil {
		return Page{}, err
	}
	page, err := parsePage(raw)
	return page, gateway(err)
}

// Webhooks returns the provider's webhooks; errors as of Videos.
func (p Provider) Webhooks(ctx context.Context) ([]Webhook, error) {
	raw, err := p.get(ctx, "/webhooks")
	if err != nil {
		return nil, err
	}
	hooks, err := parseWebhooks(raw)
	return hooks, gateway(err)
}

// get asks the provider. Answers of another kind than 200 count as wrong,
// redirects too: the client does not follow them.
func (p Provider) get(ctx context.Context, path string) ([]byte, error) {
	header := http.Header{"Authorization": {"Bearer " + p.Token}, "Accept": {"application/json"}}
	res, err := p.Client.Do(ctx, outbound.Request{Method: http.MethodGet, URL: p.BaseURL + path, Header: header})
	switch {
	case err != nil:
		return nil, gateway(err)
	case res.Status == http.StatusUnauthorized || res.Status == http.StatusForbidden:
		return nil, controlplane.Invalid([]decision.Detail{{Field: "api_token", Issue: "is refused by the provider"}})
	case res.Status != http.StatusOK:
		return nil, gateway(fmt.Errorf("it answered with status %d", res.Status))
	case res.Truncated:
		return nil, gateway(errors.New("its answer is too large"))
	}
	return res.Body, nil
}

// gateway turns what is wrong with the provider into bad_gateway; nil stays nil.
func gateway(err error) error {
	if err == nil {
		return nil
	}
	return &controlplane.Error{Code: decision.BadGateway, Message: "The provider did not answer as expected: " + err.Error() + ".", Cause: err}
}

// parsePage reads a page and checks what is stored of it. Download addresses
// are checked where they are used, one by one: a bad one spoils its own video
// only.
func parsePage(raw []byte) (Page, error) {
	var p Page
	if err := json.Unmarshal(raw, &p); err != nil || p.Videos == nil {
		return Page{}, errors.New("no list of videos")
	}
	if len(p.NextCursor) > maxCursor || len(p.Videos) > 10*pageSize {
		return Page{}, errors.New("a page that is too large")
	}
	for i, v := range p.Videos {
		if v.ID == "" || len(v.ID) > maxID || !plain(v.ID) || v.Duration < 0 || v.Duration > 1e7 || v.Size < 0 {
			return Page{}, fmt.Errorf("video %d of the page is malformed", i)
		}
		p.Videos[i].Title = strings.ReplaceAll(strings.ToValidUTF8(v.Title, ""), "\x00", "")
	}
	return p, nil
}

// parseWebhooks reads the provider's webhooks.
func parseWebhooks(raw []byte) ([]Webhook, error) {
	var answer struct {
		Webhooks []Webhook `json:"webhooks"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Webhooks == nil {
		return nil, errors.New("no list of webhooks")
	}
	if len(answer.Webhooks) > pageSize {
		return nil, fmt.Errorf("more than %d webhooks", pageSize)
	}
	return answer.Webhooks, nil
}

// plain reports whether Postgres can store s.
func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

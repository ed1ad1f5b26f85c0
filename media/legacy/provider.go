// Package legacy imports an account's videos from another provider: any HTTPS endpoint
// that answers as documented in docs/media.md, "Migration".
package legacy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/outbound"
)

// pageSize is how many videos are asked for at a time.
const pageSize = 100

// Bounds of what a provider may say.
const (
	maxID     = 200
	maxCursor = 1000
)

// maxPage bounds an answer of a provider, in bytes, and callTimeout one call of it.
const (
	maxPage     = 256 << 10
	callTimeout = 20 * time.Second
)

// NewClient returns a guarded client fit for a Provider. allow lists addresses that
// are not public and may be called all the same.
func NewClient(allow []netip.Prefix) *outbound.Client {
	return outbound.New(outbound.Config{Allow: allow, Timeout: callTimeout, MaxBody: maxPage})
}

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

// ids are those of the page's videos.
func (p Page) ids() []string {
	out := make([]string, len(p.Videos))
	for i, v := range p.Videos {
		out[i] = v.ID
	}
	return out
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
	page, err := ParsePage(raw)
	return page, gateway(err)
}

// Webhooks returns the provider's webhooks; errors as of Videos.
func (p Provider) Webhooks(ctx context.Context) ([]Webhook, error) {
	raw, err := p.get(ctx, "/webhooks")
	if err != nil {
		return nil, err
	}
	hooks, err := ParseWebhooks(raw)
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
		return nil, apierror.Invalid([]decision.Detail{{Field: "api_token", Issue: "is refused by the provider"}})
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
	return &apierror.Error{Code: decision.BadGateway, Message: "The provider did not answer as expected: " + err.Error() + ".", Cause: err}
}

// maxList bounds the lists in a provider's answer. It may send more than it was
// asked for, within reason.
const maxList = 10 * pageSize

// list is a list of at most maxList items.
type list[T any] []T

// UnmarshalJSON decodes one item after the other.
func (l *list[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errors.New("no list")
	}
	*l = list[T]{}
	for d.More() {
		var item T
		if len(*l) == maxList {
			return errors.New("too many items")
		}
		if err := d.Decode(&item); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// ParsePage reads a page and checks what is stored of it. It takes time linear in
// raw and memory of at most 16 times its length: a list of more videos than a page
// can have is left at the first that is too many. Download addresses
// are checked where they are used, one by one: a bad one spoils its own video
// only.
func ParsePage(raw []byte) (Page, error) {
	var answer struct {
		Videos     list[Video] `json:"videos"`
		NextCursor string      `json:"next_cursor"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Videos == nil {
		return Page{}, errors.New("no list of videos, or too many")
	}
	p := Page{answer.Videos, answer.NextCursor}
	if len(p.NextCursor) > maxCursor {
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

// ParseWebhooks reads the provider's webhooks, at the cost of ParsePage.
func ParseWebhooks(raw []byte) ([]Webhook, error) {
	var answer struct {
		Webhooks list[Webhook] `json:"webhooks"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Webhooks == nil {
		return nil, errors.New("no list of webhooks, or too many")
	}
	return answer.Webhooks, nil
}

// plain reports whether Postgres can store s.
func plain(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

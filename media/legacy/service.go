package legacy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// maxPages bounds how much of a provider is walked through at once.
const maxPages = 100

// walkTimeout bounds a walk that a caller waits for.
const walkTimeout = time.Minute

// MaxCalls is how many callers may wait for providers at once; one has a quarter of
// it at most. callRetry is what Retry-After says to one who has, in seconds.
const (
	MaxCalls  = 16
	callRetry = 5
)

// maxImported bounds the videos that are imported for one owner.
const maxImported = 10_000

// maxIDs bounds the videos that one request may name.
const maxIDs = 1000

// Service is what can be done about moving in.
type Service struct {
	DB     postgres.DB
	Assets assets.Service
	Client *outbound.Client      // of NewClient
	Calls  *fairshare.Pool       // of those who wait for their provider
	Jobs   *river.Client[pgx.Tx] // only InsertTx is called
	Box    *secretbox.Box        // seals tokens; nil: connect answers 501
	Now    func() time.Time
	// Subscribe makes subscriptions of the provider's webhooks; nil: POST
	// …/webhooks/sync answers 501.
	Subscribe Subscriber
}

// ConnectInput is the body of POST …/connect.
type ConnectInput struct {
	BaseURL  string `json:"base_url"`
	APIToken string `json:"api_token"`
}

// Connect checks the connection by asking for one video, and stores it.
func (v Service) Connect(ctx context.Context, o owner.Owner, in ConnectInput) (Connection, error) {
	if v.Box == nil {
		return Connection{}, apierror.Errorf(decision.NotImplemented, "No key is configured here to keep tokens of providers with.")
	}
	c := Connection{Owner: o.ID, Account: o.Account, Plan: o.Plan, BaseURL: strings.TrimRight(in.BaseURL, "/"), State: stateNone, ConnectedAt: v.now()}
	if err := v.check(ctx, in); err != nil {
		return Connection{}, err
	}
	leave, err := v.call(o)
	if err != nil {
		return Connection{}, err
	}
	defer leave()
	p := Provider{Client: v.Client, BaseURL: c.BaseURL, Token: in.APIToken}
	if _, err := p.Videos(ctx, "", 1); err != nil {
		return Connection{}, err
	}
	c.Token = v.Box.Seal([]byte(in.APIToken), row(o.ID))
	return c, save(ctx, v.DB, c)
}

// check reports every bad field of a connection before anything is asked.
func (v Service) check(ctx context.Context, in ConnectInput) error {
	var f form.Form
	f.URL("base_url", in.BaseURL)
	if len(in.APIToken) == 0 || len(in.APIToken) > 4096 || strings.ContainsFunc(in.APIToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		f.Fail("api_token", "is missing or no token", "1 to 4096 printable characters")
	}
	if err := f.Err(); err != nil {
		return err
	}
	if strings.Contains(in.BaseURL, "?") {
		f.Fail("base_url", "has a query", "URL without a query")
	}
	if err := v.Client.CheckURL(ctx, in.BaseURL); err != nil {
		d := outbound.Detail("base_url", err)
		f.Fail(d.Field, d.Issue, d.Expected)
	}
	return f.Err()
}

// Sealed is where tokens of providers are stored, for reseal.
func Sealed() reencrypt.Column {
	return reencrypt.Column{Table: "media_migrations", ID: "owner", Value: "token", Row: row}
}

// row binds a sealed token to its place.
func row(owner string) string { return "media_migrations " + owner }

// open returns the connection of o and its provider. It fails with conflict when
// there is none.
func (v Service) open(ctx context.Context, o owner.Owner) (Connection, Provider, error) {
	c, err := get(ctx, v.DB, o.ID)
	if apierror.Code(err) == decision.NotFound {
		err = apierror.Errorf(decision.Conflict, "No provider is connected.")
	}
	if err != nil || v.Box == nil {
		return c, Provider{}, err
	}
	token, err := v.Box.Open(c.Token, row(c.Owner))
	if err != nil {
		return c, Provider{}, fmt.Errorf("open token of provider: %w", err)
	}
	return c, Provider{Client: v.Client, BaseURL: c.BaseURL, Token: string(token)}, nil
}

// ImportInput is the body of POST …/import: all videos, or those named.
type ImportInput struct {
	All      bool     `json:"all"`
	VideoIDs []string `json:"video_ids"`
}

// Import starts the job that takes videos over. It fails with conflict while one
// runs.
func (v Service) Import(ctx context.Context, o owner.Owner, in ImportInput) error {
	var f form.Form
	if in.All == (len(in.VideoIDs) > 0) {
		f.Fail("video_ids", "names not exactly one choice", "either all, or video_ids")
	}
	bad := func(id string) bool { return id == "" || len(id) > maxID || !plain(id) }
	if len(in.VideoIDs) > maxIDs || slices.ContainsFunc(in.VideoIDs, bad) {
		f.Fail("video_ids", "has too many ids, or one that is none", "at most 1000 ids")
	}
	if err := f.Err(); err != nil {
		return err
	}
	if _, _, err := v.open(ctx, o); err != nil {
		return err
	}
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if ok, err := begin(ctx, tx, o.ID, v.now()); err != nil {
			return err
		} else if !ok {
			return apierror.Errorf(decision.Conflict, "An import is running already.")
		}
		if _, err := v.Jobs.InsertTx(ctx, tx, ImportArgs{Owner: o.ID, IDs: in.VideoIDs}, nil); err != nil {
			return fmt.Errorf("enqueue import: %w", err)
		}
		return nil
	})
}

// StatusView is the answer of GET …/status.
type StatusView struct {
	Status      string    `json:"status"` // connected, importing, completed or failed
	BaseURL     string    `json:"base_url"`
	Error       *string   `json:"error"`
	Progress    Progress  `json:"progress"`
	ConnectedAt time.Time `json:"connected_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// status names where a connection stands: an import has ended only when all that
// it took over has arrived or failed.
func status(c Connection, p Progress) string {
	switch {
	case c.State == stateFailed:
		return "failed"
	case c.State == stateRunning || p.Processing > 0:
		return "importing"
	case c.State == stateDone:
		return "completed"
	}
	return "connected"
}

// Status tells how far the import of o is.
func (v Service) Status(ctx context.Context, o owner.Owner) (StatusView, error) {
	c, _, err := v.open(ctx, o)
	if err != nil {
		return StatusView{}, err
	}
	p, err := count(ctx, v.DB, o.ID)
	if err != nil {
		return StatusView{}, err
	}
	out := StatusView{Status: status(c, p), BaseURL: c.BaseURL, Progress: p, ConnectedAt: c.ConnectedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC()}
	if c.Error != "" {
		out.Error = &c.Error
	}
	return out, nil
}

// Compare sets what the provider has beside what has arrived. It reads at most
// maxPages pages of maxPage bytes, one after the other, and keeps of them what
// Comparing keeps.
func (v Service) Compare(ctx context.Context, o owner.Owner) (Comparison, error) {
	_, p, err := v.open(ctx, o)
	if err != nil {
		return Comparison{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, walkTimeout)
	defer cancel()
	c := NewComparing()
	if err := eachImported(ctx, v.DB, o.ID, nil, c.Here); err != nil {
		return Comparison{}, err
	}
	partial, err := walk(ctx, p, func(found []Video) error { c.There(found); return nil })
	return c.Done(partial), err
}

// call takes a place for a call of the provider that o waits for, which the caller
// must leave. It is rate_limit_exceeded when o has its share.
func (v Service) call(o owner.Owner) (leave func(), err error) {
	leave, ok := v.Calls.TryEnter(o.ID)
	if !ok {
		return nil, &apierror.Error{Code: decision.RateLimited, RetryAfter: callRetry, Message: "Too many calls of your provider are under way."}
	}
	return leave, nil
}

// walk hands every page of the provider to f; partial: there are more than
// maxPages of them.
func walk(ctx context.Context, p Provider, f func([]Video) error) (partial bool, err error) {
	cursor := ""
	for range maxPages {
		page, err := p.Videos(ctx, cursor, pageSize)
		if err != nil {
			return false, err
		}
		if err := f(page.Videos); err != nil {
			return false, err
		}
		if cursor = page.NextCursor; cursor == "" {
			return false, nil
		}
	}
	return true, nil
}

// now is the clock at the precision of the API.
func (v Service) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }

package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

const (
	// streamsEach is how many live parts one session may have open: browsers have
	// six connections to a host, and the pages need some.
	streamsEach = 4
	// streamLife is when a stream ends; the browser opens another by itself, and
	// who is signed in is looked at anew.
	streamLife = 10 * time.Minute
	// writeLimit bounds how long a browser may take to read one event.
	writeLimit = 15 * time.Second
	// ticksBetweenLooks is after how many events it is made sure that the session
	// has not ended.
	ticksBetweenLooks = 5
)

// look is who looks at a part of a page, and at what.
type look struct {
	viewer
	Account accounts.Account // that is chosen
	Token   string           // of forms in the part
	Query   url.Values
}

// part is a piece of a page that is kept up to date.
type part struct {
	section string // whose visibility it has
	read    func(*site, context.Context, look) (any, error)
	page    *template.Template // that defines "live"
}

// part finds a part by its name.
func partNamed(name string) (p part, ok bool) {
	switch name {
	case "overview":
		return part{"/", (*site).overview, pages()["overview"]}, true
	case "edges":
		return part{"/edges", (*site).edges, pages()["edges"]}, true
	case "requests":
		return part{"/requests", (*site).requests, pages()["requests"]}, true
	case "deliveries":
		return part{"/webhooks", (*site).deliveries, pages()["webhook"]}, true
	case "executions":
		return part{"/schedules", (*site).executions, pages()["schedule"]}, true
	}
	return p, false
}

// live answers with a part of a page as server-sent events: at once, and then as
// often as Every says.
func (s *site) live(w http.ResponseWriter, r *http.Request) error {
	p, ok := partNamed(chi.URLParam(r, "part"))
	if !ok {
		return s.notFound(w, r)
	}
	v, ok, err := s.viewer(r)
	if err != nil {
		return err
	}
	if !ok {
		return apierror.Errorf(decision.AuthRequired, "Sign in first.")
	}
	for _, sec := range sections {
		if sec.Path == p.section && !sec.visible(v) {
			return apierror.Errorf(decision.ScopeMissing, "You may not see this page.")
		}
	}
	of, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	leave, ok := s.enter(v)
	if !ok {
		return &apierror.Error{Code: decision.RateLimited, Message: "Too many live pages are open.", RetryAfter: 10}
	}
	defer leave()
	l := look{v, of, s.token(w, r, v.Session), r.URL.Query()}
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	s.stream(ctx, w, r, p, l)
	return nil
}

// enter takes a place for a live part, of those of the account and of the session.
func (s *site) enter(v viewer) (leave func(), ok bool) {
	ofAccount, ok := s.open.TryEnter(v.Account.ID)
	if !ok {
		return nil, false
	}
	ofSession, ok := s.openEach.TryEnter(v.Session)
	if !ok {
		ofAccount()
		return nil, false
	}
	return func() { ofSession(); ofAccount() }, true
}

// stream writes events until ctx ends, the session has ended, or the browser is
// gone. A failure to read skips an event: the page then shows what it had.
func (s *site) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, p part, l look) {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for n := 1; ; n++ {
		event, err := s.event(ctx, p, l)
		if err != nil {
			s.Log.WarnContext(ctx, "read a live part", "part", p.section, "cause", err)
			event = []byte(": not now\n\n")
		}
		if send(w, event) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.Done:
			return
		}
		if n%ticksBetweenLooks == 0 {
			if _, ok, err := s.viewer(r.WithContext(ctx)); err == nil && !ok {
				return
			}
		}
	}
}

// event is what a part looks like now.
func (s *site) event(ctx context.Context, p part, l look) ([]byte, error) {
	data, err := p.read(s, ctx, l)
	if err != nil {
		return nil, err
	}
	var html, event bytes.Buffer
	if err := p.page.ExecuteTemplate(&html, "live", data); err != nil {
		return nil, err
	}
	text := html.Bytes()
	if l.Account.ID != l.viewer.Account.ID {
		text = carry(text, l.Account.ID)
	}
	for line := range bytes.Lines(text) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	event.WriteString("\n")
	return event.Bytes(), nil
}

// send writes an event out.
func send(w http.ResponseWriter, event []byte) error {
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeLimit)) // a writer that has none has no limit either
	if _, err := w.Write(event); err != nil {
		return err
	}
	return c.Flush()
}

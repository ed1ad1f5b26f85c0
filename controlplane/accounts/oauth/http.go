package oauth

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/oauth/page"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/websession"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// handlers serve a Service over HTTP.
type handlers struct {
	service *Service
	respond httpapi.Adapter
	guard   websession.Guard
}

// newGuard keeps the cookies of our pages. SameSite is lax, not strict: people come
// to the authorization endpoint by a link on the site of the client. Only an http
// issuer, as on a local stack, gets cookies that are not Secure.
func newGuard(c Config) websession.Guard {
	return websession.Guard{Secure: strings.HasPrefix(c.Issuer, "https://"), Path: "/oauth", Name: "sluice-", SameSite: http.SameSiteLaxMode, Sessions: c.Sessions}
}

// Routes mounts the routes for everyone: the pages, the endpoints for clients
// and the metadata. Clients get errors in the form of RFC 6749 section 5.2, as
// their libraries want it, people get pages.
func (s *Service) Routes(r chi.Router, a httpapi.Adapter) {
	h := handlers{s, a, newGuard(s.config)}
	r.Get("/oauth/authorize", h.page(h.authorize))
	r.Post("/oauth/sign-in", h.page(h.signIn))
	r.Post("/oauth/consent", h.page(h.consent))
	r.Post("/oauth/sign-out", h.page(h.signOut))
	r.Post("/oauth/token", h.client(h.token))
	r.Post("/oauth/revoke", h.client(h.revoke))
	r.Post("/oauth/introspect", h.client(h.introspect))
	r.Get("/.well-known/oauth-authorization-server", httpapi.Handle(a, http.StatusOK, h.server))
	r.Get(resourcePath, httpapi.Handle(a, http.StatusOK, h.resource))
	r.Get(resourcePath+mcpPath, httpapi.Handle(a, http.StatusOK, h.resource))
}

// page turns a handler's error into a page.
func (h handlers) page(f httpapi.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			h.problem(w, r, err)
		}
	}
}

// problem shows a person what went wrong; the causes of our own failures go to
// the log.
func (h handlers) problem(w http.ResponseWriter, r *http.Request, err error) {
	p := page.Problem{Title: "Something went wrong", Text: "Something went wrong on our side.", RequestID: httpapi.RequestID(r)}
	status, refusal := h.outcome(w, r, err)
	if refusal.Code != rules.ServerError {
		p.Title, p.Text = "This request cannot go on", refusal.Description
	}
	if status == http.StatusUnauthorized { // which asks for credentials: people are asked by our page
		status = http.StatusBadRequest
	}
	if err := page.Write(w, status, p); err != nil {
		h.respond.Error(w, r, err)
	}
}

// outcome is the status and the refusal that stand for err; a failure of ours is
// logged. It sets Retry-After where there is one.
func (h handlers) outcome(w http.ResponseWriter, r *http.Request, err error) (int, *rules.Error) {
	if e, ok := errors.AsType[*rules.Error](err); ok {
		if e.Code == rules.InvalidClient {
			return http.StatusUnauthorized, e
		}
		return http.StatusBadRequest, e
	}
	if e, ok := errors.AsType[*apierror.Error](err); ok && e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	switch apierror.Code(err) {
	case decision.Unavailable:
		h.log().WarnContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", httpapi.RequestID(r), "cause", err)
		return http.StatusServiceUnavailable, &rules.Error{Code: rules.TemporarilyUnavailable, Description: "The service is unavailable. Try again soon."}
	case decision.RateLimited:
		return http.StatusTooManyRequests, &rules.Error{Code: rules.TemporarilyUnavailable, Description: "There were too many requests."}
	case decision.TooLarge:
		return http.StatusRequestEntityTooLarge, &rules.Error{Code: rules.InvalidRequest, Description: "The request is too long."}
	}
	h.log().ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", httpapi.RequestID(r), "cause", err)
	return http.StatusInternalServerError, &rules.Error{Code: rules.ServerError, Description: "Something went wrong on our side."}
}

// log is where failures of ours go.
func (h handlers) log() *slog.Logger {
	if h.respond.Log != nil {
		return h.respond.Log
	}
	return slog.Default()
}

// readForm reads a form-encoded body. Parameters in the query do not count: they
// would show up in logs.
func readForm(w http.ResponseWriter, r *http.Request) (rules.Form, error) {
	if err := formEncoded(r); err != nil {
		return rules.Form{}, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rules.MaxForm))
	if err != nil {
		return rules.Form{}, &apierror.Error{Code: decision.TooLarge, Cause: err}
	}
	form, bad := rules.ParseForm(string(raw))
	if bad == nil && form.Repeated() {
		bad = &rules.Error{Code: rules.InvalidRequest, Description: "A parameter is given more than once."}
	}
	if bad != nil {
		return form, bad
	}
	return form, nil
}

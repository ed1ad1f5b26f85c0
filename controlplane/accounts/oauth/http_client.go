package oauth

import (
	"mime"
	"net/http"
	"strings"

	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/platform/http/httpapi"
)

// clientHandler serves an authenticated application.
type clientHandler func(r *http.Request, app App, form rules.Form) (answer any, err error)

// refusalBody is an error as RFC 6749 section 5.2 wants it. It takes the place of
// the envelope here: client libraries read `error` as a string.
type refusalBody struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
	RequestID   string `json:"request_id,omitempty"`
}

// client authenticates the application, and answers with what f returns. Pages
// of other origins may read the answer: it takes the client's credentials to get
// one, and cookies do not count.
func (h handlers) client(f clientHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Pragma", "no-cache")
		head.Set("Access-Control-Allow-Origin", "*")
		answer, err := h.serve(w, r, f)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		httpapi.JSON(w, http.StatusOK, answer)
	}
}

// serve reads the form, finds out which application sends it, and calls f.
func (h handlers) serve(w http.ResponseWriter, r *http.Request, f clientHandler) (any, error) {
	form, err := readForm(w, r)
	if err != nil {
		return nil, err
	}
	shown, bad := rules.ClientCredentials(strings.Join(r.Header.Values("Authorization"), ","), form)
	if bad != nil {
		return nil, bad
	}
	app, err := h.service.authenticate(r.Context(), shown)
	if err != nil {
		return nil, err
	}
	return f(r, app, form)
}

// refuse answers in the form that client libraries read. It names the way to
// authenticate only to a client that tried HTTP Basic, as RFC 6749 wants.
func (h handlers) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, refusal := h.outcome(w, r, err)
	if refusal.Code == rules.InvalidClient && r.Header.Get("Authorization") != "" {
		w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
	}
	httpapi.JSON(w, status, refusalBody{refusal.Code, refusal.Description, httpapi.RequestID(r)})
}

// formEncoded refuses a body of another type.
func formEncoded(r *http.Request) error {
	mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mt != "application/x-www-form-urlencoded" {
		return &rules.Error{Code: rules.InvalidRequest, Description: "The body must be application/x-www-form-urlencoded."}
	}
	return nil
}

// token is POST /oauth/token.
func (h handlers) token(r *http.Request, app App, form rules.Form) (any, error) {
	switch kind := form.Get("grant_type"); kind {
	case "authorization_code":
		code, err := needed(form, "code")
		if err != nil {
			return nil, err
		}
		return h.service.Exchange(r.Context(), app, code, form.Get("redirect_uri"), form.Get("code_verifier"))
	case "refresh_token":
		refresh, err := needed(form, "refresh_token")
		if err != nil {
			return nil, err
		}
		return h.service.Refresh(r.Context(), app, refresh, form.Get("scope"))
	case "":
		return nil, &rules.Error{Code: rules.InvalidRequest, Description: "grant_type is missing."}
	}
	return nil, &rules.Error{Code: rules.UnsupportedGrantType, Description: "grant_type must be authorization_code or refresh_token."}
}

// needed returns a parameter that must be there.
func needed(form rules.Form, name string) (string, error) {
	v := form.Get(name)
	if v == "" {
		return "", &rules.Error{Code: rules.InvalidRequest, Description: name + " is missing."}
	}
	return v, nil
}

// revoke is POST /oauth/revoke. token_type_hint is not needed: both kinds are looked
// for. The answer does not tell whether there was such a token.
func (h handlers) revoke(r *http.Request, app App, form rules.Form) (any, error) {
	t, err := needed(form, "token")
	if err != nil {
		return nil, err
	}
	return struct{}{}, h.service.Revoke(r.Context(), app, t)
}

// introspect is POST /oauth/introspect.
//
// introspect serves applications with a secret only: whoever found a token must
// not learn from us what it is good for.
func (h handlers) introspect(r *http.Request, app App, form rules.Form) (any, error) {
	if app.Public {
		return nil, &rules.Error{Code: rules.InvalidClient, Description: "This needs a client with a secret."}
	}
	t, err := needed(form, "token")
	if err != nil {
		return nil, err
	}
	return h.service.Introspect(r.Context(), app, t)
}

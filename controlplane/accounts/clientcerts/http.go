package clientcerts

import (
	"net/http"
	"regexp"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// API serves the revoked certificates to operators.
type API struct {
	Store   Store
	Respond httpapi.Adapter
}

// AdminRoutes mounts the routes relative to r, which checks who calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Post("/client-certificates/revoked", httpapi.Handle(a.Respond, http.StatusCreated, a.revoke))
	r.Get("/client-certificates/revoked", httpapi.Handle(a.Respond, http.StatusOK, a.list))
	r.Delete("/client-certificates/revoked/{id}", httpapi.Handle(a.Respond, http.StatusNoContent, a.restore))
}

// revokeRequest names the certificate: by itself, or by its serial number alone.
type revokeRequest struct {
	PEM    string `json:"pem"`
	Serial string `json:"serial"`
	Reason string `json:"reason"`
}

// BodyLimit bounds the body, in bytes.
func (revokeRequest) BodyLimit() int64 { return 64 << 10 }

const maxReason = 200

var (
	serialForm  = regexp.MustCompile(`^[0-9a-f]{1,80}$`)
	unprintable = regexp.MustCompile(`\pC`)
)

// revoke answers POST client-certificates/revoked.
func (a API) revoke(r *http.Request, in revokeRequest) (Revoked, error) {
	var details []decision.Detail
	add := func(field, issue, expected string) {
		details = append(details, decision.Detail{Field: field, Issue: issue, Expected: expected})
	}
	serial, issuer := clientcert.Serial(in.Serial), (*string)(nil)
	switch {
	case (in.PEM == "") == (in.Serial == ""):
		add("pem", "is missing, or stands beside serial", "pem, or serial")
	case in.PEM != "":
		cert, issue := apikeys.ParseCertificate([]byte(in.PEM))
		if issue != "" {
			add("pem", issue, "PEM of one certificate")
			break
		}
		serial, issuer = Of(cert)
	}
	if len(details) == 0 && !serialForm.MatchString(serial) {
		add("serial", "is not a serial number", "1 to 80 hexadecimal digits")
	}
	if utf8.RuneCountInString(in.Reason) > maxReason || !utf8.ValidString(in.Reason) || unprintable.MatchString(in.Reason) {
		add("reason", "is not valid", "at most 200 printable characters")
	}
	if err := apierror.Invalid(details); err != nil {
		return Revoked{}, err
	}
	return a.Store.Revoke(r.Context(), serial, issuer, in.Reason)
}

// list answers GET client-certificates/revoked.
func (a API) list(r *http.Request, _ httpapi.None) (out paging.List[Revoked], err error) {
	p, details := List.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), p)
}

// restore answers DELETE client-certificates/revoked/{id}.
func (a API) restore(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	return none, a.Store.Restore(r.Context(), chi.URLParam(r, "id"))
}

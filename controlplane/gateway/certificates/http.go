package certificates

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// upload is what an operator sends.
type upload struct {
	Name        string `json:"name"` // empty: the first host
	Certificate string `json:"certificate"`
	PrivateKey  string `json:"private_key"`
}

// BodyLimit lets the largest pair through that is read.
func (upload) BodyLimit() int64 { return 256 << 10 }

// listed is the answer to a list request.
type listed struct {
	Data []Certificate `json:"data"`
}

// Routes mounts /certificates relative to r, which checks who calls.
func (s Store) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/certificates", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (listed, error) {
		list, err := s.List(r.Context())
		return listed{append([]Certificate{}, list...)}, err
	}))
	r.Post("/certificates", httpapi.Handle(a, http.StatusCreated, func(r *http.Request, u upload) (Certificate, error) {
		p, err := ReadPair([]byte(u.Certificate), []byte(u.PrivateKey), s.now())
		if err != nil {
			return Certificate{}, err
		}
		if u.Name == "" {
			u.Name = strings.Replace(p.Hosts[0], "*", "wildcard", 1)
		}
		if !validName(u.Name) {
			return Certificate{}, apierror.Invalid([]decision.Detail{{Field: "name", Issue: "is not a name", Expected: "1 to 100 of a-z, 0-9, dot, dash and underscore"}})
		}
		return s.Upload(r.Context(), u.Name, p)
	}))
	r.Get("/certificates/{name}", httpapi.Handle(a, http.StatusOK, func(r *http.Request, _ httpapi.None) (Certificate, error) {
		return s.Get(r.Context(), chi.URLParam(r, "name"))
	}))
	r.Delete("/certificates/{name}", httpapi.Handle(a, http.StatusNoContent, func(r *http.Request, _ httpapi.None) (httpapi.None, error) {
		return httpapi.None{}, s.Remove(r.Context(), chi.URLParam(r, "name"))
	}))
	r.Post("/certificates/{name}/renew", httpapi.Handle(a, http.StatusAccepted, func(r *http.Request, _ httpapi.None) (Certificate, error) {
		return s.RenewNow(r.Context(), chi.URLParam(r, "name"))
	}))
}

// validName reports whether a certificate may have a name: the form of those in the
// configuration.
func validName(s string) bool {
	return s != "" && len(s) <= 100 && s[0] != '-' && s[0] != '.' && s[0] != '_' && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	})
}

package assets

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// statusTTL is how long a paying agent may ask for what it bought. Payments are
// spent one at a time, so it has nothing to show when it comes back to see whether
// its clip is ready: the answer names an address where it can, without paying again.
const statusTTL = 24 * time.Hour

// status shows a clip to the bearer of its token. Asking does not make the
// address hold any longer.
func (v Service) status(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return err
	}
	g, err := signing.Verify(key, r.URL.Query().Get("token"), signing.Status, id, now(v.Now))
	if err != nil {
		return err
	}
	if !ident.Valid("clip", id) {
		return &apierror.Error{Code: decision.NotFound}
	}
	a, err := one(r.Context(), v.DB, `id = $1`, id)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	out, err := v.withStatus(r, a, g.Expires)
	return httpapi.Result(w, http.StatusOK, out, err)
}

// withStatus answers with a clip and the address of its state until a time.
func (v Service) withStatus(r *http.Request, a Asset, until time.Time) (View, error) {
	key, err := v.Keys.Key(r.Context())
	if err != nil {
		return View{}, err
	}
	token, err := signing.Sign(key, signing.Grant{Use: signing.Status, Subject: a.ID, Expires: until})
	out := v.view(a, key)
	out.StatusURL = some(v.Playback + "/clips/" + a.ID + "?token=" + token)
	return out, err
}

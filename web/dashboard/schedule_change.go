package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

// patchOf is a change as the API reads it.
func patchOf(members map[string]any) (definition.Patch, error) {
	raw, err := json.Marshal(members)
	if err != nil {
		return definition.Patch{}, fmt.Errorf("write the change of a schedule: %w", err)
	}
	return definition.ParsePatch(raw)
}

// holdSchedule is the form that pauses a schedule, or lets it go on.
func (s *site) holdSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	status, message := schedules.Paused, "paused"
	if r.PostForm.Get("status") == schedules.Active {
		status, message = schedules.Active, "resumed"
	}
	patch, err := patchOf(map[string]any{"status": status})
	if err != nil {
		return err
	}
	one, err := s.Schedules.Update(r.Context(), a.ID, chi.URLParam(r, "id"), patch)
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/schedules/"+one.ID, v, a, "done", message))
}

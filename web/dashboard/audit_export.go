package dashboard

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/platform/http/webpage"
	"sluice.dev/sluice/platform/storage/audit"
)

// exporter writes entries in one format.
type exporter interface {
	write(list []auditEntry) error
}

// csvExport writes rows with a heading.
type csvExport struct{ *csv.Writer }

// auditColumns are those of the export, in their order.
var auditColumns = []string{"id", "at", "actor", "actor_name", "address", "request_id", "account", "account_name", "action", "target", "target_name", "before", "after"}

func (x csvExport) write(list []auditEntry) error {
	for _, e := range list {
		row := []string{strconv.FormatInt(e.ID, 10), e.At.Format(time.RFC3339Nano), e.Actor, e.ActorName, e.Address, e.RequestID, deref(e.Account), e.AccountName,
			e.Action, e.Target, e.TargetName, string(e.Before), string(e.After)}
		for i := range row {
			row[i] = plainCell(row[i])
		}
		if err := x.Write(row); err != nil {
			return err
		}
	}
	x.Flush()
	return x.Error()
}

// plainCell keeps spreadsheets from taking a text for a formula.
func plainCell(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// jsonExport writes an object a line.
type jsonExport struct{ *json.Encoder }

// exportedEntry is one of those objects.
type exportedEntry struct {
	audit.Entry
	ActorName   string `json:"actor_name,omitempty"`
	AccountName string `json:"account_name,omitempty"`
	TargetName  string `json:"target_name,omitempty"`
}

func (x jsonExport) write(list []auditEntry) error {
	for _, e := range list {
		if err := x.Encode(exportedEntry{e.Entry, e.ActorName, e.AccountName, e.TargetName}); err != nil {
			return err
		}
	}
	return nil
}

// exportTime bounds how long a browser may take to read a thousand entries.
const exportTime = 30 * time.Second

// exportAudit answers with the entries that the page shows and those of its other pages, as
// a file: CSV, or a JSON object a line. It holds a thousand of them at a time, and ends after
// audit.MaxExport; a failure on the way cuts the connection, so that nobody takes a part for
// the whole.
func (s *site) exportAudit(w http.ResponseWriter, r *http.Request, v viewer) error {
	q, err := s.auditSearch(r.Context(), auditQueryOf(r.URL.Query(), v))
	if err != nil {
		return err
	}
	format, kind := "csv", "text/csv; charset=utf-8; header=present"
	var x exporter = csvExport{csv.NewWriter(w)}
	if r.URL.Query().Get("format") == "ndjson" {
		format, kind, x = "ndjson", "application/x-ndjson", jsonExport{json.NewEncoder(w)}
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="audit-%s.%s"`, s.Now().UTC().Format("20060102-150405"), format))
	h.Set("Content-Security-Policy", webpage.Allow{}.Policy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if c, ok := x.(csvExport); ok {
		_ = c.Write(auditColumns) // into a buffer
	}
	control := http.NewResponseController(w)
	more, err := audit.Each(r.Context(), s.DB, q, func(list []audit.Entry) error {
		_ = control.SetWriteDeadline(time.Now().Add(exportTime)) // a writer that has none has no limit either
		entries, err := s.named(r.Context(), list)
		if err != nil {
			return err
		}
		return x.write(entries)
	})
	if err != nil {
		s.Log.WarnContext(r.Context(), "export the audit log", "cause", err)
		panic(http.ErrAbortHandler)
	}
	if c, ok := x.(csvExport); ok {
		c.Flush()
	}
	if more {
		s.Log.InfoContext(r.Context(), "an export of the audit log was cut", "entries", audit.MaxExport)
	}
	return nil
}

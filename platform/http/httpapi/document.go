package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Document answers with a description that anybody may read and keep for a
// minute, pages of other sites included; or with 304 when the client has it.
func Document(w http.ResponseWriter, r *http.Request, contentType string, text []byte) {
	sum := sha256.Sum256(text)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "public, max-age=60")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "ETag, X-Request-ID")
	if HasETag(strings.Join(r.Header.Values("If-None-Match"), ","), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", contentType)
	_, _ = w.Write(text) // the client is gone otherwise
}

// JSONDocument is Document for a value.
func JSONDocument(w http.ResponseWriter, r *http.Request, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write a description: %w", err)
	}
	Document(w, r, "application/json", b.Bytes())
	return nil
}

// HasETag reports whether the value of an If-Match or If-None-Match header, which is
// a list of ETags or *, names tag (RFC 9110 section 13.1: compared weakly).
func HasETag(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

// Preflight answers a browser that asks whether a page of another site may read
// a description.
func Preflight(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("Access-Control-Max-Age", "86400")
	h.Set("Allow", "GET, HEAD, OPTIONS")
	w.WriteHeader(http.StatusNoContent)
}

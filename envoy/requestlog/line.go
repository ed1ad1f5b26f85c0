package requestlog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
)

// The mark opens a line that is about a request: its letters say whether to print it
// and what to record of it.
const (
	markBegin = `{"` + edgeapi.LineMark + `":"`
	markSize  = len(markBegin) + len(`xy",`)
)

// mark is what a line says of itself.
type mark struct{ print, record byte }

// marked cuts the mark off a line; ok is false for one of Envoy's own log.
func marked(line []byte) (m mark, rest []byte, ok bool) {
	if len(line) < markSize || string(line[:len(markBegin)]) != markBegin || string(line[markSize-2:markSize]) != `",` {
		return m, line, false
	}
	return mark{line[len(markBegin)], line[len(markBegin)+1]}, line[markSize:], true
}

// valueOf is the text after a name that is unique in a line: what clients choose is
// quoted, so that `,"status":` is in no value of theirs. It ends before any of ends.
func valueOf(line []byte, name, ends string) []byte {
	_, after, ok := bytes.Cut(line, []byte(name))
	if !ok {
		return nil
	}
	if i := bytes.IndexAny(after, ends); i >= 0 {
		return after[:i]
	}
	return nil
}

// failed reports whether a line is of a request that failed: with a status of 400 or
// more, or without one as the client was gone, or with one of gRPC that says so.
func failed(line []byte) bool {
	if s := valueOf(line, `,"grpc_status":`, ",}"); len(s) > 0 && string(s) != "0" {
		return true
	}
	status := valueOf(line, `,"status":`, ",}")
	return len(status) != 3 || status[0] >= '4'
}

// fields are what Envoy writes of a request; see resources.accessLog.
type fields struct {
	ID        string    `json:"request_id"`
	Time      time.Time `json:"time"`
	Method    string    `json:"method"`
	Host      string    `json:"host"`
	Path      string    `json:"path"`
	Protocol  string    `json:"protocol"`
	Status    int       `json:"status"`
	GRPC      *int      `json:"grpc_status"`
	Flags     string    `json:"flags"`
	Detail    string    `json:"detail"`
	Failure   string    `json:"failure"`
	Route     string    `json:"route"`
	Caller    string    `json:"caller"`
	Product   string    `json:"product"`
	Upstream  string    `json:"upstream"`
	Attempts  int       `json:"attempts"`
	Client    string    `json:"client"`
	UserAgent string    `json:"user_agent"`
	BytesIn   int64     `json:"bytes_in"`
	BytesOut  int64     `json:"bytes_out"`
	TraceID   string    `json:"trace_id"`
	Would     string    `json:"would_refuse"`
	Duration  int64     `json:"duration_ms"`
	edgeapi.Timings
}

// Bounds of what is kept, in bytes.
const (
	maxName    = 100
	maxPath    = 512
	maxText    = 200
	maxScopes  = 32
	maxLineLen = 16 << 10
)

// parse reads a line whose mark is cut off. ok is false if it is not one of a request.
// It takes time linear in the line, of at most maxLineLen bytes, and memory of a few
// times that; what it returns has at most 4 KiB.
func parse(rest []byte, path bool) (r edgeapi.Request, ok bool) {
	if len(rest) > maxLineLen {
		return r, false
	}
	var f fields
	if json.Unmarshal(append([]byte{'{'}, rest...), &f) != nil || !isID(f.ID) || f.Time.IsZero() {
		return r, false
	}
	r = edgeapi.Request{
		ID: cut(f.ID, maxName), Time: f.Time, Method: cut(f.Method, 20), Host: cut(hostOf(f.Host), maxName), Protocol: cut(f.Protocol, 20), Status: f.Status,
		Route: cut(f.Route, maxName), Product: cut(f.Product, maxName), Flags: cut(strings.Trim(f.Flags, "-"), maxName), Detail: cut(f.Detail, maxName),
		Failure: cut(f.Failure, maxText), Upstream: cut(f.Upstream, maxName), Attempts: f.Attempts, Client: cut(f.Client, maxName), UserAgent: cut(f.UserAgent, maxText),
		BytesIn: f.BytesIn, BytesOut: f.BytesOut, TraceID: cut(f.TraceID, maxName), Timings: f.Timings,
	}
	if f.GRPC != nil {
		r.GRPC, r.Status = f.GRPC, decision.HTTPOfGRPC(strconv.Itoa(*f.GRPC))
	}
	if r.Timings.Total == 0 { // no last byte went to the client, as the request was cut off
		r.Timings.Total = 1000 * f.Duration
	}
	if path {
		r.Path = cut(f.Path, maxPath)
	}
	// A request without a route was refused before our headers were taken from it: what
	// it says of its caller is the client's own word.
	if r.Route != "" {
		nameCaller(&r, f.Caller)
	}
	r.WouldRefuse, r.WouldReason = refusal(f.Would)
	if code, ok := strings.CutPrefix(f.Detail, edgeapi.EndedDetail); ok {
		r.Code = cut(code, maxName)
	}
	return r, true
}

// isID reports whether a text may be the id of a request. Those of requests that are
// refused before they have one of ours are the client's own, as in the answer.
func isID(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

// nameCaller reads an identity, or what the edge filter has left in its place.
func nameCaller(r *edgeapi.Request, caller string) {
	for part := range strings.SplitSeq(caller, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "a":
			r.Account = cut(value, maxName)
		case "k":
			r.Key = cut(value, maxName)
		case "p":
			r.Plan = cut(value, maxName)
		case "s":
			for scope := range strings.SplitSeq(value, ",") {
				if scope != "" && len(r.Scopes) < maxScopes {
					r.Scopes = append(r.Scopes, cut(scope, 40))
				}
			}
		}
	}
	r.Code, r.Reason = refusal(caller)
}

// refusal reads the code of a refusal, and what was wrong in words, where the edge filter
// has left them.
func refusal(text string) (code, reason string) {
	var field, issue, expected string
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "c":
			code = cut(value, maxName)
		case "f":
			field = value
		case "i":
			issue = value
		case "x":
			expected = value
		}
	}
	if field == "" {
		return code, ""
	}
	reason = field + " " + issue
	if expected != "" {
		reason += "; expected: " + expected
	}
	return code, cut(reason, maxText)
}

// hostOf drops a user and password, which some clients send in front of a host.
func hostOf(authority string) string {
	return authority[strings.LastIndexByte(authority, '@')+1:]
}

// cut bounds a text, at the end of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

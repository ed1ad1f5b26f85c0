package phone

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/phone/sdp"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// BodyLimit bounds the body.
func (Input) BodyLimit() int64 { return 16 << 10 }

// CallInput is the body of POST /v1/phone/calls.
type CallInput struct {
	LineID string `json:"line_id"`
	To     string `json:"to"` // E.164, or sip:user@ the trunk's host
}

// BodyLimit bounds the body.
func (CallInput) BodyLimit() int64 { return 4 << 10 }

// CallFilter is what a list of calls is narrowed to.
type CallFilter struct {
	Page                paging.Page
	Line, Stream, State string // empty: all
}

var (
	line = owner.InPath("line")
	call = owner.InPath("call")
)

// Routes adds the routes of /v1/phone to r, which must verify the caller's identity
// first.
func (v Service) Routes(all chi.Router, a httpapi.Adapter) {
	r := all.With(v.whereAvailable(a))
	const lines, calls = "/v1/phone/lines", "/v1/phone/calls"
	r.Get("/v1/phone", httpapi.Handle(a, http.StatusOK, v.about))
	r.Post(lines, owner.Handle(a, http.StatusCreated, v.createLine))
	r.Get(lines, owner.Handle(a, http.StatusOK, v.lines))
	r.Get(lines+"/{id}", owner.HandleFor(a, http.StatusOK, line, v.getLine))
	r.Patch(lines+"/{id}", owner.HandleFor(a, http.StatusOK, line, v.patchLine))
	r.Delete(lines+"/{id}", owner.HandleFor(a, http.StatusNoContent, line, v.deleteLine))
	r.Post(lines+"/{id}/password", owner.HandleFor(a, http.StatusOK, line, v.password))
	r.Post(calls, owner.Handle(a, http.StatusCreated, v.createCall))
	r.Get(calls, owner.Handle(a, http.StatusOK, v.calls))
	r.Get(calls+"/{id}", owner.HandleFor(a, http.StatusOK, call, v.getCall))
	r.Post(calls+"/{id}/hangup", owner.HandleFor(a, http.StatusOK, call, v.hangUp))
}

// whereAvailable answers 501 where nobody speaks SIP.
func (v Service) whereAvailable(a httpapi.Adapter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			if !v.Settings.Available {
				return apierror.Errorf(decision.NotImplemented, "There is no telephony here: it needs the media engine, ffmpeg and SLUICE_SIP_ADDR.")
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

// About is how the deployment is reached by telephone.
type About struct {
	Host       string   `json:"host"` // where lines are called
	Transports []string `json:"transports"`
	Codecs     []string `json:"codecs"`
	CallsOut   bool     `json:"calls_out"` // there is a trunk
}

// about answers GET /v1/phone.
func (v Service) about(*http.Request, httpapi.None) (About, error) {
	return About{v.Settings.Host, []string{"udp", "tcp"}, []string{sdp.Opus, sdp.PCMU, sdp.PCMA}, v.Settings.Trunk != ""}, nil
}

// newLine and newCall are answers with where the row is found that was made just now.
type (
	newLine struct{ LineView }
	newCall struct{ CallView }
)

// SetHeaders sets those of the answer.
func (n newLine) SetHeaders(h http.Header) { h.Set("Location", "/v1/phone/lines/"+n.ID) }

// SetHeaders sets those of the answer.
func (n newCall) SetHeaders(h http.Header) { h.Set("Location", "/v1/phone/calls/"+n.ID) }

func (v Service) createLine(o owner.Owner, r *http.Request, in Input) (newLine, error) {
	l, password, err := v.CreateLine(r.Context(), o, in)
	return newLine{v.view(l, password)}, err
}

func (v Service) lines(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[LineView], error) {
	var f form.Form
	p, details := lineList.Parse(r.URL.Query())
	f.Add(details)
	if err := f.Err(); err != nil {
		return paging.List[LineView]{}, err
	}
	found, err := listLines(r.Context(), v.DB, o.ID, r.URL.Query().Get("stream_id"), p)
	return paging.Map(found, func(l Line) LineView { return v.view(l, "") }), err
}

func (v Service) getLine(t owner.Target, r *http.Request, _ httpapi.None) (LineView, error) {
	l, err := lineOf(r.Context(), v.DB, t.Owner.ID, t.ID)
	return v.view(l, ""), err
}

func (v Service) patchLine(t owner.Target, r *http.Request, in Input) (LineView, error) {
	l, err := v.UpdateLine(r.Context(), t.Owner, t.ID, in)
	return v.view(l, ""), err
}

func (v Service) deleteLine(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, deleteLine(r.Context(), v.DB, t.Owner.ID, t.ID)
}

func (v Service) password(t owner.Target, r *http.Request, _ httpapi.None) (LineView, error) {
	l, password, err := v.RotatePassword(r.Context(), t.Owner, t.ID)
	return v.view(l, password), err
}

func (v Service) createCall(o owner.Owner, r *http.Request, in CallInput) (newCall, error) {
	c, err := v.CreateCall(r.Context(), o, in)
	return newCall{v.callView(c)}, err
}

func (v Service) calls(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[CallView], error) {
	var f form.Form
	filter := parseCallFilter(&f, r.URL.Query())
	if err := f.Err(); err != nil {
		return paging.List[CallView]{}, err
	}
	found, err := listCalls(r.Context(), v.DB, o.ID, filter)
	return paging.Map(found, v.callView), err
}

// parseCallFilter reads the query of GET /v1/phone/calls; every bad parameter goes to f.
func parseCallFilter(f *form.Form, q url.Values) CallFilter {
	p, details := callList.Parse(q)
	f.Add(details)
	out := CallFilter{Page: p, Line: q.Get("line_id"), Stream: q.Get("stream_id"), State: q.Get("state")}
	if out.State != "" {
		f.OneOf("state", out.State, States)
	}
	return out
}

func (v Service) getCall(t owner.Target, r *http.Request, _ httpapi.None) (CallView, error) {
	c, err := callOf(r.Context(), v.DB, t.Owner.ID, t.ID, "")
	return v.callView(c), err
}

func (v Service) hangUp(t owner.Target, r *http.Request, _ httpapi.None) (CallView, error) {
	c, err := v.HangUp(r.Context(), t.Owner, t.ID)
	return v.callView(c), err
}

// dialled is the user part of an address that may be called: nothing in it means
// anything to SIP.
var dialled = regexp.MustCompile(`^\+?[A-Za-z0-9._-]{1,64}$`)

// callable says who may be called: accounts of strangers must not reach numbers that cost
// the operator more than they pay.
func (v Service) callable() string {
	if len(v.Settings.Prefixes) == 0 {
		return "nobody: the operator has named no numbers (SLUICE_SIP_TRUNK_PREFIXES)"
	}
	return "what begins with " + strings.Join(v.Settings.Prefixes, ", ")
}

// check reads an outbound call. What is called is a user of the trunk, and nobody else:
// an address of another host is refused, so that no caller chooses where we send to.
func (v Service) check(ctx context.Context, o owner.Owner, in CallInput) (l Line, remote string, err error) {
	var f form.Form
	user, host := in.To, v.Settings.Trunk
	if rest, ok := strings.CutPrefix(in.To, "sip:"); ok {
		user, host, _ = strings.Cut(rest, "@")
	} else if !number.MatchString(user) {
		user = ""
	}
	if !dialled.MatchString(user) || !strings.EqualFold(host, v.Settings.Trunk) {
		f.Fail("to", "cannot be called", "E.164, such as +493012345678, or sip:user@"+v.Settings.Trunk)
	} else if !slices.ContainsFunc(v.Settings.Prefixes, func(p string) bool { return strings.HasPrefix(user, p) }) {
		f.Fail("to", "may not be called from here", v.callable())
	}
	l, err = lineOf(ctx, v.DB, o.ID, in.LineID)
	if apierror.Code(err) == decision.NotFound {
		f.Fail("line_id", "names no line of yours", "the id of a line")
		err = nil
	}
	if err == nil {
		err = f.Err()
	}
	return l, "sip:" + user + "@" + v.Settings.Trunk, err
}

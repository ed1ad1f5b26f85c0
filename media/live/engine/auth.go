// Package engine runs MediaMTX, a media server in a process of its own, for the
// product: it asks us who may publish, we watch who does, and store what it has
// recorded. Without it the product's API works all the same.
package engine

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// folder is the first part of every path in the engine.
const folder = "live/"

// question is what MediaMTX asks (its documentation, "HTTP-based authentication").
type question struct {
	IP       string `json:"ip"`
	User     string `json:"user"`
	Password string `json:"password"`
	Token    string `json:"token"`
	Action   string `json:"action"`
	Path     string `json:"path"`
	Protocol string `json:"protocol"`
	Query    string `json:"query"`
}

// maxQuestion bounds a question, in bytes. It is decoded in linear time, and takes
// no more memory than its texts.
const maxQuestion = 64 << 10

// Own is who asks the engine for what, where that may be one of our own parts: they speak
// to it from this machine.
type Own struct {
	User, Password   string // or the stream's key
	Action, Protocol string // such as publish, rtmp
	Path             string
}

// Auth answers MediaMTX: 204 lets a client pass, anything else does not. Only the
// engine knows secret, the password that goes with each question. Each of own says whether
// a part of ours asks, which has checked its user.
func Auth(s streams.Service, reader Reader, a httpapi.Adapter, secret string, own ...func(Own) bool) http.Handler {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if _, given, _ := r.BasicAuth(); subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 {
			return &apierror.Error{Code: decision.AuthRequired}
		}
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
		var q question
		if err == nil {
			err = json.Unmarshal(raw, &q)
		}
		if err != nil {
			return &apierror.Error{Code: decision.InvalidRequest, Cause: err}
		}
		if err := decide(r, s, reader, q, own); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// readProtocols are those that our own proxy reads by, from this machine or with the
// product's password. Whoever reads by another has come to the engine's port himself, be it by way of a proxy
// on this machine.
var readProtocols = []string{"hls", "webrtc"}

// decide answers one question: nil lets the client pass. The engine's other
// actions (api, metrics, playback of its own) are refused, whoever asks.
func decide(r *http.Request, s streams.Service, reader Reader, q question, own []func(Own) bool) error {
	id, ok := strings.CutPrefix(q.Path, folder)
	switch {
	case !ok || !ident.Valid("play", id):
		return &apierror.Error{Code: decision.Stream004}
	case local(q.IP) && q.ours(own):
		return nil
	case q.Protocol == "rtsp": // which nobody else speaks
	case q.Action == "publish":
		return s.Admit(r.Context(), streams.Attempt{PlaybackID: id, Protocol: q.Protocol, Key: streams.KeyOf(q.Token, q.Password, q.Query)})
	case q.Action == "read" && slices.Contains(readProtocols, q.Protocol):
		if is, err := reader.reads(r.Context(), q); err != nil || is || local(q.IP) {
			return err // nil: our own proxy, which has checked the viewer's token
		}
	}
	return &apierror.Error{Code: decision.ScopeMissing}
}

// ours reports whether a part of ours asks.
func (q question) ours(own []func(Own) bool) bool {
	o := Own{User: q.User, Password: streams.KeyOf(q.Token, q.Password, q.Query), Action: q.Action, Protocol: q.Protocol, Path: q.Path}
	return slices.ContainsFunc(own, func(is func(Own) bool) bool { return is(o) })
}

// local reports whether ip is this machine.
func local(ip string) bool {
	addr, err := netip.ParseAddr(ip)
	return err == nil && addr.IsLoopback()
}

package transports

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Service is what callers can do with transports. Every field but Settings and
// Available is required.
type Service struct {
	DB        postgres.DB
	Streams   streams.Service
	Settings  Settings
	Available bool // a media engine is here, whose process works on links
	Now       func() time.Time
}

// BodyLimit bounds the body: a description, escaped, and room.
func (InputRequest) BodyLimit() int64 { return 64 << 10 }

// Routes adds the routes of all transports to r, which must verify the caller's identity
// first.
func (v Service) Routes(r chi.Router, a httpapi.Adapter) {
	for _, name := range Names {
		t := transport{v, name}
		base := "/v1/" + name
		r.Get(base, owner.Handle(a, http.StatusOK, t.about))
		r.Get(base+"/sources", owner.Handle(a, http.StatusOK, t.sources))
		r.Post(base+"/inputs", owner.Handle(a, http.StatusCreated, t.addInput))
		r.Post(base+"/outputs", owner.Handle(a, http.StatusCreated, t.addOutput))
		for kind, direction := range map[string]string{"inputs": In, "outputs": Out} {
			d := side{t, direction}
			target := owner.InPath(map[string]string{In: "inp", Out: "out"}[direction])
			r.Get(base+"/"+kind, owner.Handle(a, http.StatusOK, d.list))
			r.Get(base+"/"+kind+"/{id}", owner.HandleFor(a, http.StatusOK, target, d.get))
			r.Delete(base+"/"+kind+"/{id}", owner.HandleFor(a, http.StatusNoContent, target, d.remove))
		}
		if name == Dante {
			r.Get(base+"/outputs/{id}/sdp", a.Handle(t.sdp))
		}
	}
}

// transport is the API of one of them.
type transport struct {
	Service
	name string
}

// about answers GET /v1/{transport}; 501 says what the operator must set.
func (t transport) about(owner.Owner, *http.Request, httpapi.None) (About, error) {
	return t.Service.about(t.name)
}

// sources answers GET /v1/{transport}/sources.
func (t transport) sources(_ owner.Owner, r *http.Request, _ httpapi.None) (map[string][]SourceView, error) {
	found, err := t.Service.sources(r.Context(), t.name)
	out := []SourceView{}
	for _, s := range found {
		out = append(out, viewSource(s))
	}
	return map[string][]SourceView{"data": out}, err
}

// addInput answers POST /v1/{transport}/inputs.
func (t transport) addInput(o owner.Owner, r *http.Request, in InputRequest) (View, error) {
	if !t.usable(t.name) {
		return View{}, t.off(t.name)
	}
	var f form.Form
	if _, err := t.stream(r.Context(), &f, o, in.StreamID); err != nil {
		return View{}, err
	}
	l, err := t.input(r.Context(), &f, o, t.name, in)
	return t.add(r.Context(), l, err, &f)
}

// addOutput answers POST /v1/{transport}/outputs.
func (t transport) addOutput(o owner.Owner, r *http.Request, in OutputRequest) (View, error) {
	if !t.usable(t.name) {
		return View{}, t.off(t.name)
	}
	var f form.Form
	s, err := t.stream(r.Context(), &f, o, in.StreamID)
	if err == nil {
		err = f.Err() // its title may be wanted
	}
	if err != nil {
		return View{}, err
	}
	l := t.output(&f, o, t.name, s.Title, in)
	if f.Err() == nil && l.Spec.Flow != nil {
		err = t.unused(r.Context(), l)
	}
	return t.add(r.Context(), l, err, &f)
}

// unused fails with conflict when somebody on the network announces a flow of l's
// address: two senders of one address would be heard in turn.
func (t transport) unused(ctx context.Context, l Link) error {
	found, err := t.Service.sources(ctx, t.name)
	for _, s := range found {
		if s.Address == l.Address {
			return apierror.Errorf(decision.Conflict, "%s is the address of a flow that is announced as %.100q: name another.", l.Address, s.Name)
		}
	}
	return err
}

// add stores a link that is right.
func (t transport) add(ctx context.Context, l Link, err error, f *form.Form) (View, error) {
	if err == nil {
		err = f.Err()
	}
	if err == nil {
		err = t.insert(ctx, l)
	}
	return t.view(l), err
}

// stream finds the stream that a body names.
func (t transport) stream(ctx context.Context, f *form.Form, o owner.Owner, id string) (streams.Stream, error) {
	var s streams.Stream
	var err error = &apierror.Error{Code: decision.NotFound}
	if ident.Valid("strm", id) {
		s, err = t.Streams.Get(ctx, o, id)
	}
	if apierror.Code(err) == decision.NotFound {
		f.Fail("stream_id", "names no stream of yours", "the id of a stream")
		return s, nil
	}
	return s, err
}

// sdp answers GET /v1/dante/outputs/{id}/sdp with the description of a flow.
func (t transport) sdp(w http.ResponseWriter, r *http.Request) error {
	target, err := owner.InPath("out")(r)
	if err != nil {
		return err
	}
	l, err := t.Service.get(r.Context(), target.Owner.ID, t.name, Out, target.ID)
	if err != nil {
		return err
	}
	if l.Described == "" {
		return &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Message: "The media engine has not begun to send this flow."}
	}
	httpapi.Document(w, r, "application/sdp", []byte(l.Described))
	return nil
}

// side is the API of the links of one direction.
type side struct {
	transport
	direction string
}

// list answers GET of inputs or outputs, narrowed by ?stream_id=.
func (d side) list(o owner.Owner, r *http.Request, _ httpapi.None) (paging.List[View], error) {
	var f form.Form
	p, details := links.Parse(r.URL.Query())
	f.Add(details)
	stream := r.URL.Query().Get("stream_id")
	if stream != "" && !ident.Valid("strm", stream) {
		f.Fail("stream_id", "is no id of a stream", "such as strm_…")
	}
	if err := f.Err(); err != nil {
		return paging.List[View]{}, err
	}
	found, err := d.Service.list(r.Context(), o.ID, d.name, d.direction, stream, p)
	return paging.Map(found, d.view), err
}

// get answers GET of one.
func (d side) get(t owner.Target, r *http.Request, _ httpapi.None) (View, error) {
	l, err := d.Service.get(r.Context(), t.Owner.ID, d.name, d.direction, t.ID)
	return d.view(l), err
}

// remove answers DELETE of one.
func (d side) remove(t owner.Target, r *http.Request, _ httpapi.None) (httpapi.None, error) {
	return httpapi.None{}, d.Service.remove(r.Context(), t.Owner.ID, d.name, d.direction, t.ID)
}

// now is the clock at the precision of the database and of the API.
func (v Service) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }

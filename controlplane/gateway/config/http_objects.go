package config

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// VersionHeader names the version of the configuration that an answer is of.
const VersionHeader = "Sluice-Config-Version"

// objects serves the objects of one kind, each of which is a part of the one
// document: a change of it is a new version.
type objects struct {
	handlers
	path string // of the kind, which is also its field in a document
	kind kind
}

// objectList is all objects of a kind.
type objectList struct {
	Version int64 `json:"version"`
	Data    any   `json:"data"`
}

// SetHeaders says the number of the version.
func (l objectList) SetHeaders(h http.Header) { h.Set("ETag", etag(l.Version)) }

// list answers GET {kind}.
func (o objects) list(r *http.Request, _ httpapi.None) (objectList, error) {
	v, err := o.Store.Latest(r.Context())
	return objectList{v.Number, o.kind.all(v.Document)}, err
}

// get answers GET {kind}/{name}.
func (o objects) get(w http.ResponseWriter, r *http.Request) error {
	v, err := o.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	i := o.kind.index(v.Document, chi.URLParam(r, "name"))
	if i < 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	object := o.kind.at(v.Document, i)
	setObjectHeaders(w, v.Number, object)
	if httpapi.HasETag(r.Header.Get("If-None-Match"), objectTag(object)) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	httpapi.JSON(w, http.StatusOK, object)
	return nil
}

// setObjectHeaders sets the headers that go with an object.
func setObjectHeaders(w http.ResponseWriter, version int64, object any) {
	w.Header().Set("ETag", objectTag(object))
	w.Header().Set(VersionHeader, strconv.FormatInt(version, 10))
}

// put answers PUT {kind}/{name}: 201 for a new object, else 200; with
// ?dry_run=true the difference.
func (o objects) put(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	raw, err := httpapi.ReadJSON(w, r, 0)
	if err != nil {
		return err
	}
	object, given, err := o.kind.read(raw, name)
	if err != nil {
		return httpapi.OfBody(err, raw)
	}
	if given != "" && given != name {
		return apierror.Invalid([]decision.Detail{{Field: "name", Issue: "is not the one in the path", Expected: name}})
	}
	status := http.StatusOK
	res, err := o.changeOne(r, func(d Document, i int) Document {
		if i < 0 {
			status = http.StatusCreated
		}
		return o.kind.with(d, i, object)
	})
	if err != nil {
		return err
	}
	if res.DryRun {
		httpapi.JSON(w, http.StatusOK, res)
		return nil
	}
	setObjectHeaders(w, res.Version, object)
	httpapi.JSON(w, status, object)
	return nil
}

// delete answers DELETE {kind}/{name}: 204; with ?dry_run=true the difference.
func (o objects) delete(w http.ResponseWriter, r *http.Request) error {
	res, err := o.changeOne(r, func(d Document, i int) Document {
		if i < 0 {
			return d
		}
		return o.kind.without(d, i)
	})
	if err != nil {
		return err
	}
	if len(res.Changes) == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	if res.DryRun {
		httpapi.JSON(w, http.StatusOK, res)
		return nil
	}
	w.Header().Set(VersionHeader, strconv.FormatInt(res.Version, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// changeOne changes the object of r's path, whose place edit is told, if r's
// conditions hold. Faults are named for one who knows the object and not the
// whole document.
func (o objects) changeOne(r *http.Request, edit func(Document, int) Document) (PutResult, error) {
	name := chi.URLParam(r, "name")
	var d Document
	at := -1
	res, err := o.change(r, "", func(now Version) (Document, error) {
		at = o.kind.index(now.Document, name)
		tag := ""
		if at >= 0 {
			tag = objectTag(o.kind.at(now.Document, at))
		}
		if err := checkConditions(r, tag); err != nil {
			return d, err
		}
		d = edit(now.Document, at)
		if at < 0 {
			at = o.kind.index(d, name)
		}
		return d, nil
	})
	return res, named(err, d, o.path, at)
}

// checkConditions checks the conditions of a request for an object with the given ETag;
// empty: there is none.
func checkConditions(r *http.Request, tag string) error {
	if h := r.Header.Get("If-Match"); h != "" && (tag == "" || !httpapi.HasETag(h, tag)) {
		return &apierror.Error{Code: decision.Precondition}
	}
	if h := r.Header.Get("If-None-Match"); h != "" && tag != "" && httpapi.HasETag(h, tag) {
		return apierror.Errorf(decision.Precondition, "It exists already.")
	}
	return nil
}

// objectTag is the ETag of an object: it changes with the object alone.
func objectTag(object any) string {
	b, err := json.Marshal(object)
	if err != nil { // objects of a document always encode
		panic(err)
	}
	sum := sha256.Sum256(b)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// named gives the fields of err the names of objects in place of their numbers,
// and leaves the name of the object in hand out.
func named(err error, d Document, path string, at int) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || len(e.Details) == 0 {
		return err
	}
	out := *e
	out.Details = make([]decision.Detail, len(e.Details))
	own := fmt.Sprintf("%s[%d].", path, at)
	for i, det := range e.Details {
		if rest, ok := strings.CutPrefix(det.Field, own); ok {
			det.Field = rest
		} else {
			det.Field, _ = d.byName(det.Field)
		}
		out.Details[i] = det
	}
	return &out
}

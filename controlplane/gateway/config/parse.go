package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// MaxBytes bounds the text of a document.
const MaxBytes = 8 << 20

// raw is Document with its lists still in pieces, so that a fault in one
// element does not hide those of the next.
type raw struct {
	Include            []string            `json:"include"`
	Remove             []string            `json:"remove"`
	AccessLog          string              `json:"access_log"`
	RequestLog         string              `json:"request_log"`
	AnonymousPerMinute uint32              `json:"anonymous_per_minute"`
	TrustedProxies     uint32              `json:"trusted_proxies"`
	KeyHeaders         []string            `json:"key_headers"`
	ClientCertificates *ClientCertificates `json:"client_certificates"`
	Certificates       []json.RawMessage   `json:"certificates"`
	Issuers            []json.RawMessage   `json:"issuers"`
	Classes            []json.RawMessage   `json:"classes"`
	Plans              []json.RawMessage   `json:"plans"`
	Scopes             []string            `json:"scopes"`
	Products           []json.RawMessage   `json:"products"`
	X402               *X402               `json:"x402"`
	Engines            *Engines            `json:"engines"`
	Routes             []json.RawMessage   `json:"routes"`
}

// ParseJSON reads a document from JSON. It fails with invalid_request and names
// the fields that are unknown, given twice or of the wrong type, MaxDetails of
// them at most. It does not judge the values: Validate does.
//
// It takes time linear in b, which it reads twice, and, with Faults, memory of at
// most 1 KiB for each of b's bytes: an object of few bytes is a large struct. Lists
// are bounded, so that it is less the larger b is.
func ParseJSON(b []byte) (Document, error) {
	if len(b) > MaxBytes {
		return Document{}, apierror.Errorf(decision.TooLarge, "The document is larger than %d bytes.", MaxBytes)
	}
	var r raw
	details := faults(httpapi.Unmarshal(b, &r))
	d := Document{Include: r.Include, Remove: r.Remove, AccessLog: r.AccessLog, RequestLog: r.RequestLog, AnonymousPerMinute: r.AnonymousPerMinute, TrustedProxies: r.TrustedProxies, KeyHeaders: r.KeyHeaders,
		Scopes: r.Scopes, X402: r.X402, ClientCertificates: r.ClientCertificates, Engines: r.Engines}
	d.Certificates = elements[Certificate](r.Certificates, "certificates", maxCertificates, &details)
	d.Issuers = elements[Issuer](r.Issuers, "issuers", policy.MaxIssuers-1, &details)
	d.Classes = elements[Class](r.Classes, "classes", maxClasses, &details)
	d.Plans = elements[Plan](r.Plans, "plans", maxPlans, &details)
	d.Products = elements[Product](r.Products, "products", maxProducts, &details)
	d.Routes = elements[Route](r.Routes, "routes", policy.MaxRoutes-len(reserved), &details)
	return d, apierror.Invalid(details)
}

// elements reads a list of most elements at most; one that is absent is nil.
func elements[T any](list []json.RawMessage, name string, most int, details *[]decision.Detail) []T {
	if len(list) > most {
		*details = append(*details, decision.Detail{Field: name, Issue: "has too many elements", Expected: fmt.Sprintf("at most %d", most)})
		return []T{}
	}
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, b := range list {
		if len(*details) > decision.MaxDetails {
			return out
		}
		for _, f := range faults(httpapi.Unmarshal(b, &out[i])) {
			f.Field = fmt.Sprintf("%s[%d].%s", name, i, f.Field)
			*details = append(*details, f)
		}
	}
	return out
}

// faults returns the details of err.
func faults(err error) []decision.Detail {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return e.Details
	}
	return nil
}

// AllFaults returns nil when a document's text and what it includes are without
// fault: what is wrong with the values is then found against the version before.
// Otherwise the error names the faults of d too, but for fields that text already
// has, so that one mistyped name does not hide what else is wrong.
func AllFaults(text, include []decision.Detail, d Document) error {
	list := append(slices.Clone(text), include...)
	if len(list) == 0 {
		return nil
	}
	told := list[:min(len(list), decision.MaxDetails)]
	for _, f := range d.Faults() {
		if !slices.ContainsFunc(told, func(t decision.Detail) bool { return within(t.Field, f.Field) || within(f.Field, t.Field) }) {
			list = append(list, f)
		}
	}
	return apierror.Invalid(list)
}

// within reports whether field is part, or a part of it.
func within(part, field string) bool {
	rest, ok := strings.CutPrefix(part, field)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// maxYAMLBytes bounds a YAML text, whose reader takes more memory than JSON's.
const maxYAMLBytes = 2 << 20

// maxExcerpt bounds what an error shows of a YAML text, in bytes.
const maxExcerpt = 800

// Source is the text of a document, for finding the line of a fault.
type Source struct{ file *ast.File }

// ParseYAML reads a document from YAML, of which JSON is a part. Anchors and
// aliases are refused: a few lines of them can stand for gigabytes. Faults are
// reported as by ParseJSON; src is usable when only values are at fault.
//
// The text comes from a file that the caller chose, not from the network: the
// time of the YAML library grows with the square of a line in some forms, such as
// thousands of %, which hurts only who wrote them.
func ParseYAML(b []byte) (d Document, src Source, err error) {
	js, src, err := readYAML(b)
	if err != nil {
		return d, src, err
	}
	d, err = ParseJSON(js)
	return d, src, err
}

// readYAML turns the text of a document into JSON.
func readYAML(b []byte) (js []byte, src Source, err error) {
	if len(b) > maxYAMLBytes {
		return nil, src, apierror.Errorf(decision.TooLarge, "The document is larger than %d bytes.", maxYAMLBytes)
	}
	if TooDeep(b) {
		return nil, src, apierror.Errorf(decision.InvalidRequest, "The document is nested too deeply.")
	}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, src, apierror.Errorf(decision.InvalidRequest, "The document is not valid YAML: %s", decision.Cut(yaml.FormatError(err, false, true), maxExcerpt))
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, src, apierror.Errorf(decision.InvalidRequest, "The file must hold one YAML document.")
	}
	if v := (aliasFinder{}); v.in(file) {
		return nil, src, apierror.Errorf(decision.InvalidRequest, "Anchors and aliases are not allowed.")
	}
	js, err = yaml.YAMLToJSON(b)
	if err != nil {
		return nil, src, apierror.Errorf(decision.InvalidRequest, "The document is not valid YAML: %s", decision.Cut(yaml.FormatError(err, false, true), maxExcerpt))
	}
	return js, Source{file}, nil
}

// Line returns the line on which a field such as routes[2].path stands; when it
// does not stand there, the line of the nearest part that does. 0: not known.
func (s Source) Line(field string) int {
	line, _ := s.find(field)
	return line
}

// find is Line; exact is false for the line of a part.
func (s Source) find(field string) (line int, exact bool) {
	for exact = true; s.file != nil && field != ""; exact = false {
		if path, err := yaml.PathString("$." + field); err == nil {
			if node, err := path.FilterFile(s.file); err == nil && node != nil {
				return node.GetToken().Position.Line, exact
			}
		}
		field = parent(field)
	}
	return 0, false
}

// parent cuts the last step off a field's path.
func parent(field string) string {
	for i := len(field) - 1; i > 0; i-- {
		if field[i] == '.' || field[i] == '[' {
			return field[:i]
		}
	}
	return ""
}

type aliasFinder struct{ found *bool }

func (a aliasFinder) in(f *ast.File) bool {
	a.found = new(bool)
	for _, d := range f.Docs {
		ast.Walk(a, d.Body)
	}
	return *a.found
}

// Visit implements ast.Visitor.
func (a aliasFinder) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.AliasType, ast.AnchorType, ast.MergeKeyType:
		*a.found = true
	}
	return a
}

package vision

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"sluice.dev/sluice/media/api/form"
)

// Features of a picture that can be asked for.
const (
	Texts        = "text"
	Faces        = "faces"
	Colors       = "colors"
	Descriptions = "description" // by a model
	Objects      = "objects"     // by a model
)

// known are all of them.
var known = []string{Texts, Faces, Colors, Descriptions, Objects}

// Ask is what a caller wants to know, and of what.
type Ask struct {
	Features  []string
	Languages []string  // of the text; none: the engine's
	Prompt    string    // asked of a model in place of a description; empty: none
	Asset     string    // id of the film; empty: it, or a picture, is the body
	Times     []float64 // seconds from the film's start; none: a picture
}

// Bounds of one request.
const (
	maxTimes     = 10
	maxLength    = 24 * 3600 // seconds
	maxPrompt    = 500       // characters
	maxLanguages = 4
)

// Wants reports whether a feature is asked for.
func (a Ask) Wants(feature string) bool { return slices.Contains(a.Features, feature) }

// Parse reads the query of a request. It takes time linear in it.
func Parse(q url.Values) (a Ask, err error) {
	var f form.Form
	for _, name := range fields(q.Get("features")) {
		if !slices.Contains(known, name) {
			f.Fail("features", "has one that is not known", "some of "+strings.Join(known, ", ")+", with commas")
			break
		}
		if !a.Wants(name) {
			a.Features = append(a.Features, name)
		}
	}
	for _, text := range fields(q.Get("times")) {
		at, err := strconv.ParseFloat(text, 64)
		if err != nil || !(at >= 0 && at < maxLength) {
			f.Fail("times", "has one that is no place in a film", "seconds from its start, with commas")
			break
		}
		a.Times = append(a.Times, at)
	}
	if len(a.Times) > maxTimes {
		f.Fail("times", "has too many", "at most "+strconv.Itoa(maxTimes)+" in a request")
	}
	a.Languages = fields(q.Get("language"))
	for _, tag := range a.Languages {
		if _, err := language.Parse(tag); err != nil || len(tag) > 20 || len(a.Languages) > maxLanguages {
			f.Fail("language", "is no list of languages", "at most "+strconv.Itoa(maxLanguages)+" tags such as en, de, with commas")
			break
		}
	}
	if a.Prompt = q.Get("prompt"); a.Prompt != "" {
		f.Text("prompt", a.Prompt, maxPrompt)
	}
	if a.Asset = q.Get("asset_id"); a.Asset != "" {
		f.Text("asset_id", a.Asset, 64)
	}
	if a.Asset != "" && len(a.Times) == 0 {
		a.Times = []float64{0}
	}
	return a, f.Err()
}

// fields are the parts of a list with commas.
func fields(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" && len(list) < 64 {
			list = append(list, part)
		}
	}
	return list
}

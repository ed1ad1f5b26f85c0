package dashboard

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// field is an input of a form: what stands in it, and what is wrong with that.
type field struct {
	Name     string // of the input
	Label    string
	Hint     string   // how to fill it in; empty: nothing
	Kind     string   // text, number, area, code (an area for JSON), select, checks, check; empty: text
	Value    string   // of a check: "on" or empty
	Chosen   []string // of checks
	Choices  []choice // of select and checks; of text: proposals
	Required bool
	Depends  bool     // whether it is required depends on other fields
	Max      int      // characters; 0: no bound but that of the whole form
	Of       []string // fields of the API that it stands for; none: that of its name
	Faults   []decision.Detail
}

// choice is something that can be chosen.
type choice struct{ Value, Label string }

// choices are those whose labels are their values.
func choices(values ...string) (list []choice) {
	for _, v := range values {
		list = append(list, choice{v, v})
	}
	return list
}

// Has reports whether a value of checks is chosen.
func (f field) Has(value string) bool { return slices.Contains(f.Chosen, value) }

// is reports whether a fault of the API is one of this field: of it, or of a part of it.
func (f field) is(fault string) bool {
	of := f.Of
	if of == nil {
		of = []string{f.Name}
	}
	return slices.ContainsFunc(of, func(name string) bool {
		rest, ok := strings.CutPrefix(fault, name)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// form is what people fill in to create, change or delete something.
type form struct {
	Action string // path below Root that it is sent to
	Intro  string // what it does, where the title does not say it
	Hidden []choice
	Fields []field
	Submit string   // what the button says
	Danger bool     // it destroys something
	Also   []choice // further buttons: the values of "do" and what they say
	Back   string   // path below Root
	Name   string   // of what Back leads to

	Problem string            // why it was refused; empty: it was not
	Faults  []decision.Detail // those that are of none of the fields
}

// fill puts what was typed into the fields.
func (f *form) fill(r *http.Request) {
	for i := range f.Fields {
		in := &f.Fields[i]
		values := r.PostForm[in.Name]
		if in.Kind == "checks" {
			in.Chosen = values
			continue
		}
		in.Value = ""
		if len(values) > 0 {
			in.Value = strings.TrimSpace(strings.ReplaceAll(values[0], "\r\n", "\n"))
		}
	}
}

// at is the field of a name.
func (f *form) at(name string) *field {
	i := slices.IndexFunc(f.Fields, func(in field) bool { return in.Name == name })
	if i < 0 {
		return new(field)
	}
	return &f.Fields[i]
}

// text is what stands in a field.
func (f *form) text(name string) string { return f.at(name).Value }

// parts are the pieces of what stands in a field, between commas, spaces or lines.
func (f *form) parts(name string) []string {
	return strings.FieldsFunc(f.text(name), func(r rune) bool { return r == ',' || r == '\n' || r == ' ' || r == '\t' })
}

// refused notes why a form was refused, each fault beside its field. It reports false
// for an error that nothing which is typed can mend.
func (f *form) refused(err error) bool {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != decision.InvalidRequest && e.Code != decision.Conflict && e.Code != decision.Precondition {
		return false
	}
	f.Problem = cmp.Or(e.Message, decision.Lookup(e.Code).Message)
	if e.Code == decision.InvalidRequest && e.Message == "" {
		f.Problem = "Nothing was changed yet. Correct what is marked, and send the form again."
	}
	for _, d := range e.Details {
		if i := slices.IndexFunc(f.Fields, func(in field) bool { return in.is(d.Field) }); i >= 0 {
			f.Fields[i].Faults = append(f.Fields[i].Faults, d)
		} else {
			f.Faults = append(f.Faults, d)
		}
	}
	return true
}

// formPage is a form on a page of its own.
type formPage struct {
	Form *form
	Runs []run // of a schedule as it stands in the form; none: they were not asked for
}

// ask shows a form on a page of its own. Where the section is about one account, a is that.
func (s *site) ask(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, here, title string, f *form) error {
	if slices.ContainsFunc(sections, func(sec section) bool { return sec.Path == here && sec.OfOne }) {
		return s.showOf(w, r, v, a, "form", title, here, formPage{Form: f})
	}
	return s.show(w, r, v, "form", title, here, formPage{Form: f})
}

// asked answers a form: it is shown again with its faults, if err is one that can be
// mended there, and done says where to go on if there is none.
func (s *site) asked(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, here, title string, f *form, err error, done func() error) error {
	switch {
	case err == nil:
		return done()
	case f.refused(err):
		return s.ask(w, r, v, a, here, title, f)
	}
	return err
}

// danger is what cannot be taken back, or keeps people out: it is done on a page of its own,
// once the name of what it is about is typed.
type danger struct {
	At    string // path below Root of the page and of its form
	Here  string // path of the section
	Back  string // path below Root, and what is there
	Place string
	Title string
	Intro string // what it does
	Do    string // what the button says
	Name  string // of what it is about
	More  []field
	Done  string // path below Root where to go on, and what to say there
	Said  string
}

// form is what is filled in.
func (d danger) form() *form {
	typed := field{Name: "confirm", Label: "Type " + d.Name + " to confirm", Required: true}
	return &form{Action: d.At, Back: d.Back, Name: d.Place, Intro: d.Intro, Submit: d.Do, Danger: true, Fields: append(slices.Clone(d.More), typed)}
}

// confirm shows the page of something dangerous, and has its form do that.
func (s *site) confirm(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, d danger, do func(*form) error) error {
	f := d.form()
	if r.Method != http.MethodPost {
		return s.ask(w, r, v, a, d.Here, d.Title, f)
	}
	f.fill(r)
	err := confirmed(r, d.Name)
	if err == nil {
		err = do(f)
	}
	return s.asked(w, r, v, a, d.Here, d.Title, f, err, func() error {
		return seeOther(w, r, linkOf(d.Done, v, a, "done", d.Said))
	})
}

// confirmed fails unless the name that is asked for was typed. What it is compared with may
// have spaces around it, or several in a row, which a page does not show.
func confirmed(r *http.Request, name string) error {
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if plain(r.PostForm.Get("confirm")) == plain(name) {
		return nil
	}
	return apierror.Invalid([]decision.Detail{{Field: "confirm", Issue: "is not the name that is asked for", Expected: name}})
}

// madePage shows, this once, a secret that was just made.
type madePage struct {
	Label string // what the secret is
	Text  string // the secret
	Intro string // what to do with it
	Facts []choice
	Next  string // path below Root where to go on
	Name  string // what is there
}

// made shows what was just made, with its secret.
func (s *site) made(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, here, title string, p madePage) error {
	return s.showOf(w, r, v, a, "made", title, here, p)
}

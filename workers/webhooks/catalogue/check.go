package catalogue

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"sluice.dev/sluice/filters/decision"
)

// Check compares data, as decoded from JSON, with the type's schema and
// returns every field that does not fit, named from "data" on.
func (t Type) Check(data map[string]any) []decision.Detail {
	err := t.data.Validate(map[string]any(data))
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	return appendDetails(nil, invalid)
}

// english words what a schema complains about.
var english = message.NewPrinter(language.English)

// appendDetails walks the tree of complaints down to its leaves: those name the
// fields, what is above only says that something below is wrong.
func appendDetails(details []decision.Detail, e *jsonschema.ValidationError) []decision.Detail {
	for _, cause := range e.Causes {
		details = appendDetails(details, cause)
	}
	if len(e.Causes) > 0 {
		return details
	}
	at := strings.Join(append([]string{"data"}, e.InstanceLocation...), ".")
	if missing, ok := e.ErrorKind.(*kind.Required); ok {
		for _, name := range missing.Missing {
			details = append(details, decision.Detail{Field: at + "." + name, Issue: "is missing"})
		}
		return details
	}
	return append(details, decision.Detail{Field: at, Issue: e.ErrorKind.LocalizedString(english)})
}

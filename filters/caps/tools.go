package caps

import (
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// readTools cuts the descriptions of tools, and of functions, the older name
// for them.
func (r *request) readTools() {
	for _, n := range [...]name{tools, functions} {
		v, ok := r.value(n)
		if !ok {
			continue
		}
		if v.Kind(r.body) != jsonscan.Array {
			r.refuse(spelling[n], "is not an array", "an array of objects")
			continue
		}
		i := 0
		for w := jsonscan.Members(r.body, v); w.Step(); i++ {
			if i == maxTools {
				r.refuse(spelling[n], issueLong, "at most "+strconv.Itoa(maxTools)+" of them")
				break
			}
			if w.Kind(r.body) != jsonscan.Object {
				r.refuse(spelling[n]+"["+strconv.Itoa(i)+"]", "is not an object", "an object")
				continue
			}
			r.report.Tools++
			r.cutTool(w.Value)
		}
	}
}

// cutTool cuts the description that stands in the tool and the one in its
// function; a parameter's description is not the tool's.
func (r *request) cutTool(tool jsonscan.Value) {
	for w := jsonscan.Members(r.body, tool); w.Step(); {
		switch kind := w.Kind(r.body); {
		case kind == jsonscan.String && jsonscan.Fold(w.Name, "description"):
			r.cut(w.Value)
		case kind == jsonscan.Object && jsonscan.Fold(w.Name, "function"):
			r.cutFunction(w.Value)
		}
	}
}

// cutFunction cuts the description that stands in a tool's function.
func (r *request) cutFunction(function jsonscan.Value) {
	for w := jsonscan.Members(r.body, function); w.Step(); {
		if w.Kind(r.body) == jsonscan.String && jsonscan.Fold(w.Name, "description") {
			r.cut(w.Value)
		}
	}
}

// cut shortens a string to DescriptionLimit characters.
func (r *request) cut(v jsonscan.Value) {
	text := v.Text(r.body)
	if n := jsonscan.Cut(text, DescriptionLimit); n < len(text) {
		r.edit(v.From+1+n, v.To-1, "")
		r.report.Descriptions++
	}
}

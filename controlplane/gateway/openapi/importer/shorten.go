package importer

import "sluice.dev/sluice/controlplane/gateway/openapi/document"

// dropTexts takes the texts out of a description's schemas.
func dropTexts(doc document.Object) {
	components, _ := doc["components"].(document.Object)
	schemas, _ := components["schemas"].(document.Object)
	for name, s := range schemas {
		schemas[name] = withoutTexts(s, false)
	}
}

// withoutTexts returns v without titles and descriptions; in what has names, such as
// the properties of a schema, those are names.
func withoutTexts(v any, names bool) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withoutTexts(x, false)
		}
		return out
	case document.Object:
		out := make(document.Object, len(v))
		for k, x := range v {
			if _, text := x.(string); text && !names && (k == "description" || k == "title") {
				continue
			}
			out[k] = withoutTexts(x, !names && (k == "properties" || k == "patternProperties" || k == "dependentSchemas"))
		}
		return out
	}
	return v
}

// dropAnswers takes the bodies of answers out of a description, and the schemas that
// only they refer to.
func dropAnswers(doc document.Object) {
	paths, _ := doc["paths"].(document.Object)
	for path, v := range paths {
		item, _ := v.(document.Object)
		short := document.Object{}
		for verb, v := range item {
			op, _ := v.(document.Object)
			out := document.Object{}
			for k, x := range op {
				out[k] = x
			}
			answers := document.Object{}
			of, _ := op["responses"].(document.Object)
			for status, a := range of {
				answer, _ := a.(document.Object)
				answers[status] = document.Object{"description": answer["description"]}
			}
			out["responses"] = answers
			short[verb] = out
		}
		paths[path] = short
	}
	document.Prune(doc)
}

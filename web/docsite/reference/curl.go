package reference

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
)

// maxExample is how many bytes of a body a command shows.
const maxExample = 4 << 10

// curl is a command that calls an operation, for a POSIX shell. What comes from the
// document stands in it quoted.
func (r *reader) curl(op object, o *operation, parameters []object, request object) string {
	query, headers, values := "", []string{}, map[string]string{}
	for _, p := range parameters {
		name, in := text(p["name"]), text(p["in"])
		switch {
		case in == "path":
			values[name] = r.valueOf(p)
		case p["required"] != true:
		case in == "query":
			query += "&" + url.QueryEscape(name) + "=" + url.QueryEscape(r.valueOf(p))
		case in == "header":
			headers = append(headers, name+": "+r.valueOf(p))
		}
	}
	address := filled(o.Path, values)
	if query != "" {
		address += "?" + query[1:]
	}
	if r.index.url == "" {
		address = `"$` + r.index.api.Address + `"` + quoted(address)
	} else {
		address = quoted(r.index.url + address)
	}
	lines := []string{"curl " + address}
	if o.Method != "GET" {
		lines[0] = "curl -X " + o.Method + " " + address
	}
	if c := credentials(op); c["key"] || c["token"] || c["bearer"] {
		lines = append(lines, `-H "Authorization: Bearer $`+r.index.api.Key+`"`)
	} else if c["session"] {
		lines = append(lines, `-H "Authorization: Bearer $SLUICE_SESSION_TOKEN"`)
	}
	for _, h := range headers {
		lines = append(lines, "-H "+quoted(h))
	}
	return strings.Join(append(lines, r.data(request)...), " \\\n  ")
}

// filled is a path, escaped, with values in the place of its variables.
func filled(path string, values map[string]string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(path, "{")
		b.WriteString((&url.URL{Path: before}).EscapedPath())
		if !found {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		b.WriteString(url.PathEscape(cmp.Or(values[name], placeholder(name))))
		path = after
	}
}

// data are the arguments that send a body.
func (r *reader) data(request object) []string {
	media, _ := request["content"].(object)
	if len(media) == 0 {
		return nil
	}
	kind := sorted(media)[0]
	for _, m := range sorted(media) {
		if strings.Contains(m, "json") {
			kind = m
			break
		}
	}
	of, _ := media[kind].(object)
	v := given(of)
	if v == nil || weight(v, maxExample) > maxExample {
		v = r.sample(of["schema"], 0)
	}
	fields, _ := v.(object)
	switch {
	case strings.HasPrefix(kind, "multipart/form-data") && len(fields) > 0:
		return r.form("-F", fields, of["schema"])
	case strings.HasPrefix(kind, "application/x-www-form-urlencoded") && len(fields) > 0:
		return r.form("--data-urlencode", fields, of["schema"])
	case strings.Contains(kind, "json") && r.example >= 0:
		if b, err := json.Marshal(v); err == nil {
			return []string{"-H " + quoted("Content-Type: "+kind), "-d " + quoted(string(b))}
		}
	}
	return []string{"-H " + quoted("Content-Type: "+kind), "--data-binary @FILE"}
}

// form are the arguments that send fields of a form.
func (r *reader) form(argument string, fields object, schema any) (list []string) {
	properties, _ := r.resolved(schema)["properties"].(object)
	for _, name := range sorted(fields) {
		v, isText := fields[name].(string)
		if !isText {
			b, _ := json.Marshal(fields[name]) // it came from JSON
			v = string(b)
		}
		if argument == "-F" && r.resolved(properties[name])["format"] == "binary" {
			v = "@FILE"
		}
		list = append(list, argument+" "+quoted(name+"="+v))
	}
	return list
}

// weight is about how many bytes v has as JSON; what is beyond most is not counted.
func weight(v any, most int) (n int) {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case []any:
		for _, x := range v {
			if n += 1 + weight(x, most-n); n > most {
				break
			}
		}
	case object:
		for k, x := range v {
			if n += len(k) + 4 + weight(x, most-n); n > most {
				break
			}
		}
	}
	return n + 5
}

// given is the example that a part has of itself; nil: none.
func given(o object) any {
	if v := o["example"]; v != nil {
		return v
	}
	switch list := o["examples"].(type) {
	case []any:
		if len(list) > 0 {
			return list[0]
		}
	case object:
		if len(list) > 0 {
			one, _ := list[sorted(list)[0]].(object)
			return one["value"]
		}
	}
	for _, k := range []string{"const", "default"} {
		if v := o[k]; v != nil {
			return v
		}
	}
	if list, _ := o["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	return nil
}

// valueOf is a value of a parameter, or its name in capitals.
func (r *reader) valueOf(p object) string {
	v := given(p)
	if v == nil {
		v = given(r.resolved(p["schema"]))
	}
	switch v := v.(type) {
	case string:
		if v != "" && len(v) <= 200 {
			return v
		}
	case float64, bool:
		b, _ := json.Marshal(v)
		return string(b)
	}
	return placeholder(text(p["name"]))
}

// sample is a value that a schema describes: with the fields that are required, and
// all of them where none is.
func (r *reader) sample(schema any, depth int) any {
	if r.schemas--; r.schemas < 0 || depth > maxDepth {
		return nil
	}
	s := r.resolved(schema)
	v := given(s)
	if r.example -= weight(v, r.example); r.example < 0 {
		return nil
	}
	if v != nil {
		return v
	}
	for _, several := range []string{"oneOf", "anyOf"} {
		for _, form := range parts(s[several]) {
			if !isNull(form) {
				return r.sample(form, depth+1)
			}
		}
	}
	switch types(s)[0] {
	case "object":
		return r.sampleObject(s, depth)
	case "array":
		if one := r.sample(s["items"], depth+1); one != nil {
			return []any{one}
		}
		return []any{}
	case "string":
		return "string"
	case "integer", "number":
		if v := s["minimum"]; v != nil {
			return v
		}
		return 0
	case "boolean":
		return false
	}
	return nil
}

func (r *reader) sampleObject(s object, depth int) object {
	out := object{}
	for _, part := range parts(s["allOf"]) {
		more, _ := r.sample(part, depth+1).(object)
		for k, v := range more {
			out[k] = v
		}
	}
	properties, _ := s["properties"].(object)
	required, _ := s["required"].([]any)
	for _, name := range sorted(properties) {
		p := r.resolved(properties[name])
		if p["readOnly"] == true || len(required) > 0 && order(required, name) > 0 {
			continue
		}
		r.example -= len(name)
		if v := r.sample(properties[name], depth+1); v != nil {
			out[name] = v
		}
	}
	return out
}

// placeholder stands for a value that the caller knows: its name in capitals.
func placeholder(name string) string {
	return strings.ToUpper(strings.NewReplacer("{", "", "}", "").Replace(name))
}

// quoted is text as one word of a shell, on one line.
func quoted(s string) string {
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

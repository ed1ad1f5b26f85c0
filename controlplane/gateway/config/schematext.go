package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// JSONSchema is a JSON Schema (2020-12): an object, true or false, as canonical JSON. Empty: none.
// Members stand in the order of their names, there is no white space, and a number
// is written in one way: so two texts that say the same are one, also after the
// database has kept them. docs/validation.md has the keywords.
type JSONSchema string

// The bounds of one schema's text.
const (
	maxSchemaDepth = 64
	maxNumberText  = 64 // bytes of a number
	maxExponent    = 400
)

// MarshalJSON returns the text; an empty one is null.
func (s JSONSchema) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return []byte(s), nil
}

// UnmarshalJSON reads an object, true or false. It fails when an object has two
// members of one name, and takes time linear in b times the logarithm of its
// members.
func (s *JSONSchema) UnmarshalJSON(b []byte) error {
	if err := jsonscan.Validate(b, maxSchemaDepth); err != nil {
		return err
	}
	v := jsonscan.Root(b)
	switch v.Kind(b) {
	case jsonscan.Null:
		return nil
	case jsonscan.Object, jsonscan.Bool:
	default:
		return errors.New("is not a schema")
	}
	text, err := appendCanonical(nil, b, v)
	if err == nil {
		*s = JSONSchema(text)
	}
	return err
}

// canonicalMember is a member of an object with its decoded name.
type canonicalMember struct {
	name  string
	value jsonscan.Value
}

func appendCanonical(dst, b []byte, v jsonscan.Value) ([]byte, error) {
	switch v.Kind(b) {
	case jsonscan.Object:
		return appendObject(dst, b, v)
	case jsonscan.Array:
		dst = append(dst, '[')
		comma := ""
		for m := jsonscan.Members(b, v); m.Step(); comma = "," {
			var err error
			if dst, err = appendCanonical(append(dst, comma...), b, m.Value); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case jsonscan.String:
		return appendText(dst, string(jsonscan.Append(nil, v.Text(b))))
	case jsonscan.Number:
		return appendNumber(dst, b[v.From:v.To])
	default:
		return append(dst, b[v.From:v.To]...), nil
	}
}

func appendObject(dst, b []byte, v jsonscan.Value) ([]byte, error) {
	var list []canonicalMember
	for m := jsonscan.Members(b, v); m.Step(); {
		list = append(list, canonicalMember{string(jsonscan.Append(nil, m.Name)), m.Value})
	}
	slices.SortFunc(list, func(x, y canonicalMember) int { return strings.Compare(x.name, y.name) })
	dst = append(dst, '{')
	for i, m := range list {
		if i > 0 {
			if m.name == list[i-1].name {
				return nil, errors.New("has two members of one name")
			}
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendText(dst, m.name); err != nil {
			return nil, err
		}
		if dst, err = appendCanonical(append(dst, ':'), b, m.value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendText writes a string as encoding/json does, which escapes it for HTML too.
func appendText(dst []byte, s string) ([]byte, error) {
	if strings.ContainsRune(s, 0) {
		return nil, errors.New("has a character that the database does not store") // U+0000
	}
	text, err := json.Marshal(s)
	return append(dst, text...), err
}

// appendNumber writes a number by its value: digits without zeros at the ends, and
// an exponent only where plain digits would be long.
func appendNumber(dst, raw []byte) ([]byte, error) {
	text := string(raw)
	number, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exp, err := strconv.Atoi(exponent)
	if exponent == "" {
		exp, err = 0, nil
	}
	if err != nil || exp > maxExponent || exp < -maxExponent {
		return nil, errors.New("has a number that is too long")
	}
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	switch {
	case len(trimmed) > maxNumberText || exp > maxExponent || exp < -maxExponent:
		return nil, errors.New("has a number that is too long")
	case trimmed == "":
		return append(dst, '0'), nil
	case exp >= 0 && len(trimmed)+exp <= 20:
		return append(dst, sign+trimmed+strings.Repeat("0", exp)...), nil
	case exp < 0 && -exp < len(trimmed):
		return append(dst, sign+trimmed[:len(trimmed)+exp]+"."+trimmed[len(trimmed)+exp:]...), nil
	case exp < 0 && -exp <= 20:
		return append(dst, sign+"0."+strings.Repeat("0", -exp-len(trimmed))+trimmed...), nil
	default:
		return append(dst, sign+trimmed+"e"+strconv.Itoa(exp)...), nil
	}
}

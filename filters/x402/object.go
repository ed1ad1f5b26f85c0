package x402

import (
	"math/bits"
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// object reads fields of a JSON object that has passed jsonscan.Validate. The
// first thing that is wrong becomes its issue, and stays.
type object struct {
	text  []byte
	at    jsonscan.Value
	issue string
}

func (o *object) fail(issue string) {
	if o.issue == "" {
		o.issue = issue
	}
}

// take lets what is wrong with an inner object count for o.
func (o *object) take(inner object) { o.fail(inner.issue) }

// place is where a field's value stands; its zero value is nowhere.
type place jsonscan.Value

func (p place) there() bool { return p.To > 0 }

// find looks for a field. One that is there twice is a fault: parsers differ
// about which of the two counts.
func (o *object) find(name string) (found place) {
	if o.issue != "" || o.at.To == 0 {
		return place{}
	}
	if o.at.Kind(o.text) != jsonscan.Object {
		o.fail("is not an object where it must be")
		return place{}
	}
	for w := jsonscan.Members(o.text, o.at); w.Step(); {
		if !jsonscan.Equal(w.Name, name) {
			continue
		}
		if found.there() {
			o.fail(name + " is given twice")
		}
		found = place(w.Value)
	}
	return found
}

// need is find for a field that must be there and be of a kind.
func (o *object) need(name string, kind jsonscan.Kind, what string) jsonscan.Value {
	v := jsonscan.Value(o.find(name))
	if o.issue == "" && (!place(v).there() || v.Kind(o.text) != kind) {
		o.fail(name + " is not " + what)
	}
	if o.issue != "" {
		return jsonscan.Value{}
	}
	return v
}

func (o *object) object(name string) object {
	return object{text: o.text, at: o.need(name, jsonscan.Object, "an object")}
}

// number returns the text of a number.
func (o *object) number(name string) string {
	v := o.need(name, jsonscan.Number, "a number")
	return string(o.text[v.From:v.To])
}

// str returns a string of printable ASCII that is written without escapes.
func (o *object) str(name string) string {
	v := o.need(name, jsonscan.String, "a string")
	if v.To == 0 {
		return ""
	}
	raw := v.Text(o.text)
	for _, c := range raw {
		if c == '\\' || c < ' ' || c > '~' {
			o.fail(name + " is not plain text")
			return ""
		}
	}
	return string(raw)
}

// hex returns a string that is 0x and n bytes in hexadecimal, in small letters.
func (o *object) hex(name string, n int) string {
	s := lower(o.str(name))
	if o.issue == "" && !isHex(s, n) {
		o.fail(name + " is not 0x and " + strconv.Itoa(2*n) + " hexadecimal digits")
	}
	return s
}

// isHex reports whether s is 0x and n bytes in small hexadecimal digits.
func isHex(s string, n int) bool {
	if len(s) != 2+2*n || s[:2] != "0x" {
		return false
	}
	for i := 2; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsAddress reports whether s is an address: 0x and 40 hexadecimal digits.
func IsAddress(s string) bool { return isHex(lower(s), 20) }

// decimal returns a string that is a natural number below 2^256 in its one
// decimal form: digits without a leading zero.
func (o *object) decimal(name string) Number {
	s := o.str(name)
	if o.issue == "" && !isDecimal(s) {
		o.fail(name + " is not a whole number below 2^256 as a decimal string")
	}
	return Number(s)
}

func isDecimal(s string) bool {
	if s == "" || len(s) > 78 || s[0] == '0' && len(s) > 1 {
		return false
	}
	var n [4]uint64 // little end first
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return false
		}
		carry := uint64(c - '0')
		for j := range n {
			hi, lo := bits.Mul64(n[j], 10)
			var over uint64
			n[j], over = bits.Add64(lo, carry, 0)
			carry = hi + over
		}
		if carry != 0 {
			return false
		}
	}
	return true
}

package schema

import (
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// The words of a request: those of a body, and its parameters, sorted by where they
// are.
const (
	RequestBody      = iota // None: bodies are not looked at; 1: there must be one; else 0
	RequestContents         // count and place
	RequestPath      = RequestContents + 2
	RequestQuery     = RequestPath + 2
	RequestHeaders   = RequestQuery + 2
	RequestWords     = RequestHeaders + 2
	ContentWords     = 3 // place and length of the media type, node or 0
	ParameterHash    = 0 // of the name
	ParameterName    = 1 // place and length
	ParameterFlags   = 3
	ParameterBetween = 4 // what stands between elements
	ParameterNode    = 5
	ParameterTypes   = 6 // that the value may have
	ParameterItems   = 7 // that elements may have
	ParameterSegment = 8 // of the path
	ParameterWords   = 9
)

// Flags of a parameter.
const (
	FlagRequired = 1 << iota
	FlagExplode
)

func (t *Table) request() []uint32 {
	r := t.words[headRequest]
	return t.words[r : r+RequestWords]
}

// Start begins the check of a request against t.
func (c *Checker) Start(t *Table) { c.t, c.details = t, c.details[:0] }

// Resume goes on with the check of a request against t, of which details were
// found.
func (c *Checker) Resume(t *Table, details []decision.Detail) {
	c.t, c.details = t, append(c.details[:0], details...)
}

// Details are what is wrong, decision.MaxDetails at most: nil when nothing is.
func (c *Checker) Details() []decision.Detail { return decision.Bounded(c.details) }

// HasTarget reports whether path or query are looked at.
func (t *Table) HasTarget() bool {
	r := t.request()
	return r[RequestPath] > 0 || r[RequestQuery] > 0
}

// Headers is how many headers are looked at.
func (t *Table) Headers() int { return int(t.request()[RequestHeaders]) }

// Header is the name of header i, in lower case.
func (t *Table) Header(i int) string {
	return t.at(t.request()[RequestHeaders+1] + uint32(i)*ParameterWords + ParameterName)
}

// HasBody reports whether bodies are looked at.
func (t *Table) HasBody() bool { return t.request()[RequestBody] != None }

// Header holds header i of the table against its schema.
func (c *Checker) Header(i int, value string, there bool) {
	p := c.t.request()[RequestHeaders+1] + uint32(i)*ParameterWords
	c.values = c.values[:0]
	if there {
		c.values = append(c.values, value)
	}
	if there && c.t.words[p+ParameterTypes]&TypeArray != 0 {
		c.split(c.t.words[p+ParameterBetween])
		for i, v := range c.values {
			c.values[i] = strings.TrimSpace(v)
		}
	}
	c.parameter(p, "header.")
}

// Target holds a path with its query against the schemas of both. It takes time
// linear in target, but for what checks of the values take.
func (c *Checker) Target(target string) {
	path, query, _ := strings.Cut(target, "?")
	r := c.t.request()
	c.variables(path, r[RequestPath], r[RequestPath+1])
	c.query(query, r[RequestQuery], r[RequestQuery+1])
}

// variables checks those of the path, which are in the order of their segments.
func (c *Checker) variables(path string, n, p uint32) {
	segment := uint32(0)
	for ; n > 0; n, p = n-1, p+ParameterWords {
		for ; segment < c.t.words[p+ParameterSegment]+1 && path != ""; segment++ {
			_, path, _ = strings.Cut(path, "/")
		}
		value, _, _ := strings.Cut(path, "/")
		c.values = append(c.values[:0], value)
		c.decode(p, "path.", false)
	}
}

// occurrence is one pair of a query whose name the table has.
type occurrence struct {
	parameter uint32 // which of the query's
	value     string
	next      int32 // the next one of that name; below zero: none
}

// query checks parameters of the query. It reads it once.
func (c *Checker) query(query string, n, from uint32) {
	if n == 0 {
		return
	}
	c.pairs = c.pairs[:0]
	c.first, c.last = c.first[:0], c.last[:0]
	for range n {
		c.first, c.last = append(c.first, -1), append(c.last, -1)
	}
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		name, _ = unescape(name, true)
		i, ok := c.t.parameterNamed(n, from, name)
		if !ok {
			continue
		}
		at := int32(len(c.pairs))
		c.pairs = append(c.pairs, occurrence{i, value, -1})
		if c.last[i] < 0 {
			c.first[i] = at
		} else {
			c.pairs[c.last[i]].next = at
		}
		c.last[i] = at
	}
	for i := range n {
		c.values = c.values[:0]
		for at := c.first[i]; at >= 0; at = c.pairs[at].next {
			c.values = append(c.values, c.pairs[at].value)
		}
		c.decode(from+i*ParameterWords, "query.", true)
	}
}

// parameterNamed finds a parameter among those of the query, which are sorted by
// the hashes of their names.
func (t *Table) parameterNamed(n, from uint32, name string) (uint32, bool) {
	hash := Hash(name)
	low, high := uint32(0), n
	for low < high {
		if mid := (low + high) / 2; t.words[from+mid*ParameterWords] < hash {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < n && t.words[from+low*ParameterWords] == hash; low++ {
		if t.at(from+low*ParameterWords+ParameterName) == name {
			return low, true
		}
	}
	return 0, false
}

// Body is what becomes of a body.
type Body struct {
	Code decision.Code // not empty: it is refused, whatever is in it
	Node uint32        // what it is held against; 0: it passes as it is
}

// Body says what a body with this Content-Type is held against.
func (c *Checker) Body(contentType string) Body {
	r := c.t.request()
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	group, _, _ := strings.Cut(media, "/")
	for n, p := r[RequestContents], r[RequestContents+1]; n > 0; n, p = n-1, p+ContentWords {
		switch m := c.t.at(p); {
		case media == "":
		case m == media, m == "*/*", strings.HasSuffix(m, "/*") && m[:len(m)-2] == group:
			return Body{Node: c.t.words[p+2]}
		}
	}
	return Body{Code: decision.MediaType}
}

// Types are the media types that a body may have, such as "application/json, text/plain".
func (c *Checker) Types() (list string) {
	r := c.t.request()
	for n, p := r[RequestContents], r[RequestContents+1]; n > 0 && len(list) < decision.MaxText; n, p = n-1, p+ContentWords {
		if list != "" {
			list += ", "
		}
		list += c.t.at(p)
	}
	return list
}

// Absent notes that there is no body.
func (c *Checker) Absent() {
	if c.t.request()[RequestBody] == 1 {
		c.add("body", "is missing", "")
	}
}

// JSON holds a body against a node.
func (c *Checker) JSON(node uint32, body []byte) {
	c.check(node, "body", body)
	c.b = nil // it may be large, and stays with whoever gave it
}

package voice

import (
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Bounds of what one request says: four minutes of speech, or a little more.
const (
	MaxText  = 5000     // characters
	maxBody  = 64 << 10 // bytes, of JSON with every character escaped
	MinSpeed = 0.25
	MaxSpeed = 4.0
)

// Formats are those of the sound, the usual one first.
var Formats = []string{"wav", "mp3", "opus"}

// Order is a text, and how it is to be spoken. Empty fields leave the choice.
type Order struct {
	Text     string  `json:"text"`
	Voice    string  `json:"voice"`    // the id of one
	Language string  `json:"language"` // a tag of BCP 47, such as en or en-US
	Speed    float64 `json:"speed"`    // 1: as the voice was made
	Format   string  `json:"format"`   // one of Formats
}

// language is the form of a tag: what voices of other engines are called is theirs.
var language = regexp.MustCompile(`^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$`)

// read takes an order from a request: JSON, or a body that is the text itself, with
// the other fields in the query. It reads maxBody bytes at most, and takes time linear
// in them.
func read(w http.ResponseWriter, r *http.Request) (Order, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") != "" {
		return Order{}, &apierror.Error{Code: decision.MediaType}
	}
	raw, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return Order{}, err
	}
	return Parse(kind, raw, r.URL.Query())
}

// Parse reads an order of a body of this media type and a query. It takes time linear in
// them.
func Parse(kind string, raw []byte, q url.Values) (o Order, err error) {
	var f form.Form
	switch {
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		if err := httpapi.Unmarshal(raw, &o); err != nil {
			return o, err
		}
	case kind == "" || kind == "application/octet-stream" || kind == "text/plain":
		o = Order{Text: string(raw), Voice: q.Get("voice"), Language: q.Get("language"), Format: q.Get("format")}
		if text := q.Get("speed"); text != "" {
			if o.Speed, err = strconv.ParseFloat(text, 64); err != nil || o.Speed == 0 {
				o.Speed = -1 // which is out of range
			}
		}
	default:
		return o, apierror.Errorf(decision.MediaType, "Send JSON with a text, or the text itself as text/plain or application/octet-stream.")
	}
	o.check(&f)
	return o, f.Err()
}

// check records what is wrong with o, and fills in what it leaves out.
func (o *Order) check(f *form.Form) {
	switch valid := utf8.ValidString(o.Text); {
	case !valid || strings.ContainsFunc(o.Text, unspeakable):
		f.Fail("text", "is no text", "UTF-8 without control characters")
	case strings.TrimSpace(o.Text) == "":
		f.Fail("text", "is missing or empty", "string of 1 to "+strconv.Itoa(MaxText)+" characters")
	case utf8.RuneCountInString(o.Text) > MaxText:
		f.Fail("text", "is too long", "at most "+strconv.Itoa(MaxText)+" characters: send the rest in further requests")
	case !strings.ContainsFunc(o.Text, spelled):
		f.Fail("text", "has nothing that can be said", "letters or digits")
	}
	if o.Speed == 0 {
		o.Speed = 1
	}
	if !(o.Speed >= MinSpeed && o.Speed <= MaxSpeed) {
		f.Fail("speed", "is out of range", "number from 0.25 to 4; 1 is as the voice was made")
	}
	if o.Format == "" {
		o.Format = Formats[0]
	}
	f.OneOf("format", o.Format, Formats)
	if o.Language != "" && !language.MatchString(o.Language) {
		f.Fail("language", "is no language tag", "such as en or en-US")
	}
	if o.Voice != "" {
		f.Text("voice", o.Voice, 100)
	}
}

// unspeakable reports a character that stands for no sound and no pause.
func unspeakable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }

// spelled reports a character that stands for a sound.
func spelled(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

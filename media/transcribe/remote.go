package transcribe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"mime/multipart"
	"net/textproto"
	"strings"

	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/media/transcribe/transcript"
)

// defaultModel is asked for where the operator names none.
const defaultModel = "whisper-1"

// maxAnswer bounds what is read of an answer about a piece of sound, in bytes.
const maxAnswer = 8 << 20

// address is an engine that speaks OpenAI's POST /audio/transcriptions.
type address struct{ api *remote.API }

// Check implements engines.Engine.
func (a address) Check(ctx context.Context) (string, error) {
	_, err := a.api.Check(ctx)
	return cmp.Or(a.api.Model, defaultModel), err
}

// said is an answer in the form verbose_json, of which some engines give the text alone.
type said struct {
	Language string `json:"language"`
	Text     string `json:"text"`
	Segments []struct {
		Start, End float64
		Text       string
	} `json:"segments"`
	Words []transcript.Word `json:"words"`
}

// Transcribe implements Engine. It takes memory of twice the samples.
func (a address) Transcribe(ctx context.Context, samples []int16, language string) (transcript.Transcript, error) {
	body, kind, err := formData(samples, cmp.Or(a.api.Model, defaultModel), language)
	if err != nil {
		return transcript.Transcript{}, err
	}
	res, err := a.api.Post(ctx, "/audio/transcriptions", kind, body)
	if err != nil {
		return transcript.Transcript{}, err
	}
	defer res.Body.Close()
	var answer said
	if err := remote.Decode(ctx, res.Body, &answer, maxAnswer); err != nil {
		return transcript.Transcript{}, err
	}
	return answer.transcript(samples, language, cmp.Or(a.api.Model, defaultModel)), nil
}

// formData is the body of a call.
func formData(samples []int16, model, language string) (*bytes.Reader, string, error) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	fields := [][2]string{{"model", model}, {"response_format", "verbose_json"}, {"timestamp_granularities[]", "segment"}, {"timestamp_granularities[]", "word"}}
	if language != "" {
		main, _, _ := strings.Cut(language, "-") // ISO 639 is what the API takes
		fields = append(fields, [2]string{"language", main})
	}
	var errs []error
	for _, f := range fields {
		errs = append(errs, m.WriteField(f[0], f[1]))
	}
	part, err := m.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="sound.wav"`}, "Content-Type": {"audio/wav"}})
	if err == nil {
		err = speech.WAV(part, samples)
	}
	err = errors.Join(append(errs, err, m.Close())...)
	return bytes.NewReader(b.Bytes()), m.FormDataContentType(), err
}

// transcript fills in what the engine left out: without segments all is one, and
// without words they are estimated.
func (s said) transcript(samples []int16, language, model string) transcript.Transcript {
	length := float64(len(samples)) / transcript.Rate
	t := transcript.Transcript{Language: tag(cmp.Or(language, s.Language)), Duration: length, Words: s.Words, WordTimes: transcript.Measured, Engine: model}
	for _, g := range s.Segments {
		t.Segments = append(t.Segments, transcript.Segment{Start: g.Start, End: g.End, Text: g.Text})
	}
	if len(t.Segments) == 0 && strings.TrimSpace(s.Text) != "" {
		t.Segments = []transcript.Segment{{End: length, Text: s.Text}}
	}
	if len(t.Words) > 0 {
		return t
	}
	t.EstimateWords(samples)
	return t
}

// tags are languages that the API calls by their English names.
var tags = map[string]string{"english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt", "dutch": "nl", "polish": "pl", "russian": "ru",
	"ukrainian": "uk", "turkish": "tr", "arabic": "ar", "hindi": "hi", "chinese": "zh", "japanese": "ja", "korean": "ko", "swedish": "sv", "czech": "cs", "greek": "el", "hebrew": "he"}

// tag is a language as BCP 47; und where nobody knows.
func tag(language string) string {
	language = strings.ToLower(language)
	if t, ok := tags[language]; ok {
		return t
	}
	if validLanguage.MatchString(language) {
		return language
	}
	return "und"
}

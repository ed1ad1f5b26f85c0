package voice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/engines/remote"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
)

// Remote speaks by an API like OpenAI's, POST /audio/speech. Which voices it has only
// it knows: their names are passed on as they are, and it hears the language from the
// text.
type Remote struct{ *remote.API }

// What an address is asked for that nobody has named.
const (
	defaultModel = "tts-1"
	defaultVoice = "alloy"
)

// List is none that are known.
func (Remote) List(context.Context) ([]Voice, error) { return nil, nil }

// Formats are all.
func (Remote) Formats() []string { return Formats }

// Speak puts what is answered into the folder as its input, maxSound bytes at most. An
// answer that is no sound of the format is bad_gateway.
func (v Remote) Speak(ctx context.Context, o Order, to ffmpeg.Folder) error {
	body, err := json.Marshal(map[string]any{"model": cmp.Or(v.Model, defaultModel), "input": o.Text, "voice": cmp.Or(o.Voice, defaultVoice), "speed": o.Speed, "response_format": o.Format})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	res, err := v.Post(ctx, "/audio/speech", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	f, err := os.OpenFile(to.Input(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("keep sound: %w", err)
	}
	defer f.Close()
	size, err := io.Copy(f, io.LimitReader(res.Body, maxSound+1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	head := make([]byte, 4)
	_, _ = f.ReadAt(head, 0) // which is short of a sound otherwise
	if err == nil && size > maxSound {
		err = fmt.Errorf("it is longer than %d bytes", maxSound)
	}
	if err == nil && !is(o.Format, head) {
		err = errors.New("it is no " + o.Format)
	}
	if err != nil {
		return &apierror.Error{Code: decision.BadGateway, Message: "The engine's answer is no sound of this format.", Cause: err}
	}
	return f.Close()
}

// is looks at the first four bytes of a sound.
func is(format string, head []byte) bool {
	switch format {
	case "wav":
		return string(head) == "RIFF"
	case "opus":
		return string(head) == "OggS"
	}
	return strings.HasPrefix(string(head), "ID3") || head[0] == 0xff && head[1]&0xe0 == 0xe0 // MPEG audio, ISO/IEC 11172-3, 2.4.1.3
}

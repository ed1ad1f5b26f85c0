package transcribe

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/files/ffmpeg/ffmpegtest"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

// counter says in each piece how long it is.
type counter struct{ pieces *[]float64 }

func (counter) Check(context.Context) (string, error) { return "counter", nil }

func (c counter) Transcribe(ctx context.Context, samples []int16, _ string) (transcript.Transcript, error) {
	length := float64(len(samples)) / transcript.Rate
	*c.pieces = append(*c.pieces, length)
	return transcript.Transcript{Duration: length, WordTimes: transcript.Measured, Segments: []transcript.Segment{{Start: 1, End: 2, Text: "piece"}},
		Words: []transcript.Word{{Word: "piece", Start: 1, End: 2}}}, ctx.Err()
}

// long is a service and a folder with a sound of five minutes, silent for a second at 1:40 and 3:30.
func long(t *testing.T, pieces *[]float64) (Service, func(context.Context, time.Duration, func(float64)) (transcript.Transcript, error)) {
	t.Helper()
	v := Service{FFmpeg: ffmpegtest.Tool(t), Converting: fairshare.New(fairshare.Config{Places: 1}),
		Product: &engines.Product[Engine]{Name: engines.Transcribe, Builtin: func() (Engine, bool) { return counter{pieces}, true }}}
	return v, func(ctx context.Context, longest time.Duration, progress func(float64)) (transcript.Transcript, error) {
		folder, drop, err := v.newFolder()
		if err != nil {
			t.Fatal(err)
		}
		defer drop()
		out, err := exec.Command(v.FFmpeg.Binary, "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
			"sine=frequency=300:sample_rate=8000:duration=300,volume='if(between(t,100,101)+between(t,210,211),0,1)':eval=frame", "-f", "wav", folder.Input()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return v.transcribe(ctx, "a", folder, "", longest, progress)
	}
}

func TestLongSoundsAreCutWhereTheyAreQuiet(t *testing.T) {
	t.Parallel()
	var pieces, told []float64
	_, run := long(t, &pieces)
	got, err := run(t.Context(), 10*time.Minute, func(share float64) { told = append(told, share) })
	if err != nil {
		t.Fatal(err)
	}
	if len(pieces) != 3 || pieces[0] < 100 || pieces[0] > 101 || pieces[0]+pieces[1] < 210 || pieces[0]+pieces[1] > 211 || got.Duration != 300 {
		t.Errorf("%v of %v", pieces, got.Duration)
	}
	if len(got.Words) != 3 || got.Words[1].Start != round3(pieces[0]+1) || got.Text != "piece piece piece" {
		t.Errorf("%+v", got)
	}
	if !slices.IsSorted(told) || len(told) != 3 || told[2] != 1 {
		t.Errorf("told %v", told)
	}
}

func round3(s float64) float64 { return float64(int(s*1000+0.5)) / 1000 }

func TestSoundsThatAreTooLongAndCallersWhoLeave(t *testing.T) {
	t.Parallel()
	var pieces []float64
	_, run := long(t, &pieces)
	if _, err := run(t.Context(), 4*time.Minute, func(float64) {}); apierror.Code(err) != decision.Storage001 || len(pieces) > 0 {
		t.Errorf("%v after %d pieces", err, len(pieces))
	}
	ctx, leave := context.WithCancel(t.Context())
	if _, err := run(ctx, 10*time.Minute, func(float64) { leave() }); !errors.Is(err, context.Canceled) || len(pieces) != 1 {
		t.Errorf("%v after %d pieces", err, len(pieces))
	}
}

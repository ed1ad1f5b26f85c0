package ffmpeg

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Scene is a place where the picture changes at once.
type Scene struct{ At, Score float64 } // seconds; 0 to 100

// Span is a part of a film, in seconds.
type Span struct{ From, To float64 }

// Signals are what Measure finds in a film.
type Signals struct {
	Scenes  []Scene
	Black   []Span // at least 0.4 s of black
	Silence []Span // at least 0.5 s below -40 dB
}

// maxMarks bounds the lines that are read of each kind; a film with more changes than
// this is cut too fast to have chapters.
const maxMarks = 50_000

// MeasureBytes bounds what Measure writes, for Run.
const MeasureBytes = 16 << 20

// What the filters of Measure write.
const scenesFile, blackFile, silenceFile = "scenes", "black", "silence"

// Measure looks for changes of scene, black and silence in a part of a film that has
// pictures, sound, or both; Found reads what it found.
func Measure(part Input, pictures, sound bool) Recipe {
	r := Recipe{inputs: []Input{part}, silent: true}
	var graph []string
	if pictures {
		graph = append(graph, "[0:v:0]scale=320:-2:flags=fast_bilinear,format=yuv420p,split[s][b]",
			"[s]scdet=threshold=10,metadata=mode=select:key=lavfi.scd.time,metadata=mode=print:file="+scenesFile+",nullsink",
			"[b]blackdetect=d=0.4:pix_th=0.1,metadata=mode=print:file="+blackFile+"[v]")
		r.after = append(r.after, "-map", "[v]")
	}
	if sound {
		graph = append(graph, "[0:a:0]silencedetect=noise=-40dB:duration=0.5,ametadata=mode=print:file="+silenceFile+"[a]")
		r.after = append(r.after, "-map", "[a]")
	}
	r.after = append([]string{"-filter_complex_threads", "2", "-filter_complex", strings.Join(graph, ";")}, append(r.after, "-f", "null")...)
	return r
}

// Subtitles writes the first text track of a part of a film as WebVTT. A film without one
// cannot be converted (ErrFile).
func Subtitles(part Input) Recipe {
	return Recipe{Type: "text/vtt", Suffix: "vtt", inputs: []Input{part}, after: []string{"-map", "0:s:0", "-c:s", "webvtt", "-f", "webvtt"}}
}

// Found reads what Measure has written into f. length closes what lasts to the end, in
// seconds.
func Found(f Folder, length float64) (s Signals, err error) {
	scenes, err := readMarks(f.File(scenesFile))
	if err != nil {
		return s, err
	}
	score := 0.0
	for _, m := range scenes {
		switch m.name {
		case "lavfi.scd.score":
			score = m.value
		case "lavfi.scd.time":
			s.Scenes = append(s.Scenes, Scene{m.value, score})
		}
	}
	black, err := readMarks(f.File(blackFile))
	if err == nil {
		s.Black = spans(black, "lavfi.black_start", "lavfi.black_end", length)
	}
	silence, serr := readMarks(f.File(silenceFile))
	if serr == nil {
		s.Silence = spans(silence, "lavfi.silence_start", "lavfi.silence_end", length)
	}
	return s, errors.Join(err, serr)
}

// spans pairs beginnings and ends. One that has no end lasts to the film's.
func spans(marks []mark, start, end string, length float64) (list []Span) {
	open := false
	for _, m := range marks {
		switch {
		case m.name == start && !open:
			list, open = append(list, Span{m.value, length}), true
		case m.name == end && open:
			list[len(list)-1].To, open = m.value, false
		}
	}
	return list
}

// mark is a value that a filter has written.
type mark struct {
	name  string
	value float64
}

// readMarks reads the lines name=value of a file; none if there is no file. It keeps
// maxMarks of them, and lines of at most 64 KiB.
func readMarks(name string) ([]mark, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseMarks(file)
}

// parseMarks is readMarks for an open file.
func parseMarks(r io.Reader) (list []mark, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() && len(list) < maxMarks {
		name, text, ok := strings.Cut(lines.Text(), "=")
		if value, err := strconv.ParseFloat(text, 64); ok && err == nil {
			list = append(list, mark{name, value})
		}
	}
	return list, lines.Err()
}

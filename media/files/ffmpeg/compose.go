package ffmpeg

import (
	"bufio"
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Input is one of several files that a recipe reads.
type Input struct {
	Name         string  // in the folder of the conversion
	From, Length float64 // the part that is read, in seconds; no length: to the end
	Picture      string  // of a still picture png or jpeg; empty: a film
	reads        string  // demuxers that may read it, with commas; empty: formats
	Raw          Rate    // of pictures of Pictures without a container; zero: a film
}

// args are the arguments of an input, which ffmpeg forgets after each.
func (i Input) args(more ...string) []string {
	args := []string{"-threads", "2", "-protocol_whitelist", "file"}
	if i.Picture != "" {
		return append(args, "-format_whitelist", "png_pipe,jpeg_pipe", "-f", i.Picture+"_pipe", "-i", "file:"+i.Name)
	}
	if i.Raw.Num > 0 {
		return append(args, "-format_whitelist", "h264", "-f", "h264", "-framerate", i.Raw.String(), "-i", "file:"+i.Name)
	}
	args = append(append(args, "-format_whitelist", cmp.Or(i.reads, formats)), more...)
	if i.From > 0 {
		args = append(args, "-ss", strconv.FormatFloat(i.From, 'f', 6, 64))
	}
	if i.Length > 0 {
		args = append(args, "-t", strconv.FormatFloat(i.Length, 'f', 6, 64))
	}
	return append(args, "-i", "file:"+i.Name)
}

// File is the place of an input in f.
func (f Folder) File(name string) string { return filepath.Join(f.Path, name) }

// Reported has report called about twice a second while ffmpeg works, with the length
// of what it has made. report must not block for long: ffmpeg waits for it.
func (r Recipe) Reported(report func(time.Duration)) Recipe {
	r.report = report
	return r
}

// listen reads what ffmpeg says of its progress, line by line. It keeps one line of at
// most 64 KiB.
func (r Recipe) listen(_ io.Writer, out io.Reader) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "out_time_us="); ok {
			if made, err := strconv.ParseInt(text, 10, 64); err == nil {
				r.report(time.Duration(made) * time.Microsecond)
			}
		}
	}
	return lines.Err()
}

// Rate is pictures per second, as a fraction.
type Rate struct{ Num, Den int }

// String writes it as ffmpeg reads it.
func (r Rate) String() string { return strconv.Itoa(r.Num) + "/" + strconv.Itoa(r.Den) }

// soundKbps is the bitrate of the sound that Join makes.
const soundKbps = 160

// Pictures makes H.264 without a container of several inputs by a filter graph whose result
// is [v], at this rate. kbps bounds its bitrate over any second. Results of the same rate,
// kbps and size can be put one behind the other: each begins with a whole picture, and none
// refers to a later one.
func Pictures(inputs []Input, graph string, rate Rate, kbps int) Recipe {
	return Recipe{inputs: inputs, after: []string{"-filter_complex_threads", "2", "-filter_complex", graph, "-map", "[v]", "-r", rate.String(),
		"-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-crf", "20", "-maxrate", strconv.Itoa(kbps) + "k", "-bufsize", strconv.Itoa(kbps) + "k",
		"-pix_fmt", "yuv420p", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv", "-threads", "2", "-f", "h264"}}
}

// Join makes an MP4 of pictures, the first input, and of sound that a filter graph makes of
// the others: its result is [a].
func Join(inputs []Input, graph string) Recipe {
	return Recipe{Type: "video/mp4", Suffix: "mp4", inputs: inputs, after: slices.Concat(
		[]string{"-filter_complex_threads", "2", "-filter_complex", graph, "-map", "0:v:0", "-map", "[a]", "-c:v", "copy",
			"-c:a", "aac", "-b:a", strconv.Itoa(soundKbps) + "k", "-ar", "48000", "-ac", "2"},
		containers["mp4"].args)}
}

// Largest is how many bytes a film of Join has at most whose pictures are of some runs of
// Pictures: its bitrates, a second of pictures that came at once for each run, and for the
// tables 32 bytes a picture, 300 a second and 64 KiB.
func Largest(length time.Duration, kbps int, rate Rate, runs int) int64 {
	perSecond := float64(kbps+soundKbps+16)*1000/8 + 32*float64(rate.Num)/float64(rate.Den) + 300
	return int64(length.Seconds()*perSecond*1.05) + int64(runs)*int64(kbps)*1000/8 + 64<<10
}

// Picture makes one JPEG of several inputs by a filter graph whose result is [v].
func Picture(inputs []Input, graph string) Recipe {
	return Recipe{Type: "image/jpeg", Suffix: "jpg", inputs: inputs, after: []string{"-filter_complex_threads", "2", "-filter_complex", graph, "-map", "[v]",
		"-frames:v", "1", "-c:v", "mjpeg", "-q:v", "3", "-pix_fmt", "yuvj420p", "-f", "image2pipe"}}
}

package ffmpeg

import (
	"slices"
	"strconv"
	"time"
)

// Recipe is what is to be made of a file.
type Recipe struct {
	// Type is the media type of the result, such as video/mp4, and Suffix what the
	// name of its file ends in.
	Type, Suffix string

	reads  string   // demuxers that may read the input, with commas; empty: formats
	before []string // arguments in front of the input
	after  []string // and behind it
	inputs []Input  // in place of the one input
	silent bool     // it makes no film: what its filters write is the result
	report func(time.Duration)
}

// formats are the demuxers that may read a file: each holds all of its film in the
// one file. Playlists and the like, which name other files, are not among them.
const formats = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,flv,wav,mp3,ogg,flac,aac"

// args are the arguments of ffmpeg, which runs in the folder of the conversion.
func (r Recipe) args() []string {
	args := []string{"-nostdin", "-hide_banner", "-loglevel", "error", "-y"}
	if r.report != nil {
		args = append(args, "-progress", "pipe:1", "-nostats", "-stats_period", "0.5")
	}
	if r.inputs == nil {
		args = append(args, Input{Name: "input", reads: r.reads}.args(r.before...)...)
	}
	for _, in := range r.inputs {
		args = append(args, in.args()...)
	}
	return slices.Concat(args, r.after, []string{"-map_metadata", "-1", "file:output"})
}

// Profile is a rendition that a video can be asked for.
type Profile struct {
	Name   string
	Height int // of the picture, in pixels
	Kbps   int // of the picture, kbit/s
}

// Profiles lists them all, from small to large.
var Profiles = []Profile{
	{"240p", 240, 400}, {"360p", 360, 800}, {"480p", 480, 1400}, {"720p", 720, 2800},
	{"1080p", 1080, 5000}, {"1440p", 1440, 9000}, {"2160p", 2160, 16000},
}

// ProfileOf finds a profile by its name.
func ProfileOf(name string) (Profile, bool) {
	for _, p := range Profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// ProfileNames lists the names of all profiles.
func ProfileNames() []string {
	var names []string
	for _, p := range Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Transcode makes an MP4 of H.264 and AAC of p's size, fit to be played while it
// is loaded.
func Transcode(p Profile) Recipe {
	rate := strconv.Itoa(p.Kbps) + "k"
	return Recipe{Type: "video/mp4", Suffix: "mp4", after: []string{
		"-map", "0:v:0", "-map", "0:a:0?", "-sn", "-dn", "-vf", "scale=-2:" + strconv.Itoa(p.Height),
		"-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-pix_fmt", "yuv420p",
		"-b:v", rate, "-maxrate", rate, "-bufsize", strconv.Itoa(2*p.Kbps) + "k",
		"-c:a", "aac", "-b:a", "128k", "-ac", "2", "-movflags", "+faststart", "-f", "mp4"}}
}

// container is a format that tracks can be put into as they are.
type container struct {
	kind, suffix string
	args         []string
}

// containers are the formats of Mux.
var containers = map[string]container{
	"mp4":  {"video/mp4", "mp4", []string{"-movflags", "+faststart", "-f", "mp4"}},
	"fmp4": {"video/mp4", "mp4", []string{"-movflags", "+frag_keyframe+empty_moov+default_base_moof", "-f", "mp4"}},
	"mov":  {"video/quicktime", "mov", []string{"-movflags", "+faststart", "-f", "mov"}},
	"mkv":  {"video/x-matroska", "mkv", []string{"-f", "matroska"}},
	"ts":   {"video/mp2t", "ts", []string{"-f", "mpegts"}},
}

// Containers lists the formats of Mux.
var Containers = []string{"mp4", "fmp4", "mov", "mkv", "ts"}

// Mux puts the tracks as they are into another container, one of Containers.
func Mux(format string) Recipe {
	c := containers[format]
	return Recipe{Type: c.kind, Suffix: c.suffix, after: slices.Concat([]string{"-map", "0:v:0", "-map", "0:a?", "-c", "copy"}, c.args)}
}

// Cut makes a film of the part from a place on that is length long, both in seconds, in
// the container of its source's format, mov or mp4. The tracks are as they were: the
// first picture is a whole one at or before from, and players begin at from itself.
// precise encodes them anew, so that nothing lies before.
func Cut(from, length float64, format string, precise bool) Recipe {
	if format != "mov" {
		format = "mp4"
	}
	c := containers[format]
	at := func(seconds float64) string { return strconv.FormatFloat(seconds, 'f', 3, 64) }
	tracks := []string{"-t", at(length), "-map", "0:v:0?", "-map", "0:a?", "-sn", "-dn"}
	if precise {
		tracks = append(tracks, "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "160k")
	} else {
		tracks = append(tracks, "-c", "copy")
	}
	return Recipe{Type: c.kind, Suffix: c.suffix, before: []string{"-ss", at(from)}, after: append(tracks, c.args...)}
}

// Images lists the formats of Still.
var Images = []string{"jpg", "png"}

// Still renders the picture at a place in the film, in seconds, width pixels wide
// (0: as it is), as one of Images.
func Still(at float64, width int, format string) Recipe {
	kind, codec := "image/jpeg", "mjpeg"
	if format == "png" {
		kind, codec = "image/png", "png"
	}
	r := Recipe{Type: kind, Suffix: format, before: []string{"-ss", strconv.FormatFloat(at, 'f', 3, 64)}}
	if width > 0 {
		r.after = []string{"-vf", "scale=" + strconv.Itoa(width) + ":-2"}
	}
	r.after = append(r.after, "-map", "0:v:0", "-frames:v", "1", "-c:v", codec, "-pix_fmt", map[string]string{"mjpeg": "yuvj420p", "png": "rgb24"}[codec], "-f", "image2pipe")
	return r
}

// OnClock is r, whose place in the film is on the clock of the film's tracks, in place of
// counted from where the film begins.
func (r Recipe) OnClock() Recipe {
	r.before = append(slices.Clip(r.before), "-seek_timestamp", "1")
	return r
}

// SoundRate is that of the samples of Sound, in Hz.
const SoundRate = 16000

// Sound is the sound of a film or recording, at most longest long in seconds, as
// samples of 16 bits, little end first, at SoundRate, of one channel: what engines for
// speech take.
func Sound(longest float64) Recipe {
	return Recipe{Type: "audio/L16", Suffix: "raw", after: []string{"-map", "0:a:0", "-vn", "-sn", "-dn", "-t", strconv.FormatFloat(longest, 'f', 3, 64),
		"-ac", "1", "-ar", strconv.Itoa(SoundRate), "-c:a", "pcm_s16le", "-f", "s16le"}}
}

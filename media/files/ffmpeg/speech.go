package ffmpeg

// sounds are the formats of Speech: the arguments of their encoders, for speech.
var sounds = map[string][]string{
	"wav":  {"-c:a", "pcm_s16le", "-f", "wav"},
	"mp3":  {"-c:a", "libmp3lame", "-b:a", "64k", "-f", "mp3"},
	"opus": {"-c:a", "libopus", "-b:a", "32k", "-application", "voip", "-f", "ogg"},
}

// Speech makes speech of one format, such as wav, another: wav, mp3 or opus (in Ogg).
// Only a file of the one format is read.
func Speech(from, to string) Recipe {
	return Recipe{reads: from, after: append([]string{"-map", "0:a:0", "-vn", "-ac", "1"}, sounds[to]...)}
}

package editor

import (
	"fmt"
	"strings"

	"sluice.dev/sluice/media/files/ffmpeg"
)

// sampleRate is that of all sound.
const sampleRate = 48000

// margin is how much of a film is read beyond what is shown, in seconds: a picture may
// last into the part.
const margin = 0.5

// builder writes a filter graph. It writes numbers and words of its own, and no text of
// a caller.
type builder struct {
	plan   plan
	inputs []ffmpeg.Input
	graph  strings.Builder
}

// addf adds a chain of filters.
func (b *builder) addf(format string, args ...any) {
	if b.graph.Len() > 0 {
		b.graph.WriteByte(';')
	}
	fmt.Fprintf(&b.graph, format, args...)
}

// input adds an input and returns its number.
func (b *builder) input(in ffmpeg.Input) int {
	b.inputs = append(b.inputs, in)
	return len(b.inputs) - 1
}

// moving is the recipe of the pictures of p, which is of one window.
func (p plan) moving() ffmpeg.Recipe {
	b := &builder{plan: p}
	v := b.layers(b.shots())
	b.addf("[%s]settb=%d/%d,setpts=N,trim=end_frame=%d,format=yuv420p[v]", v, p.rate.Den, p.rate.Num, p.shown)
	return ffmpeg.Pictures(b.inputs, b.graph.String(), p.rate, p.kbps())
}

// picturesName is what the pictures of all windows are called in the folder of a render.
const picturesName = "pictures"

// joined is the recipe of the whole video, whose pictures are made.
func (p plan) joined() ffmpeg.Recipe {
	b := &builder{plan: p}
	b.input(ffmpeg.Input{Name: picturesName, Raw: p.rate})
	a := b.mix(b.heard())
	b.addf("[%s]asetpts=N/SR/TB%s,alimiter=limit=0.98:level=0,atrim=end_sample=%d[a]", a, b.fades("afade", p.fadeIn, p.fadeOut, p.frames), b.samples(p.frames))
	return ffmpeg.Join(b.inputs, b.graph.String())
}

// picture is the recipe of one frame of p.
func (p plan) picture(which int) ffmpeg.Recipe {
	b := &builder{plan: p}
	v := b.layers(b.shots())
	// JPEG knows one matrix of colours only.
	b.addf("[%s]trim=start_frame=%d:end_frame=%d,format=gbrp,scale=out_color_matrix=bt601:out_range=pc,format=yuvj420p[v]", v, which, which+1)
	return ffmpeg.Picture(b.inputs, b.graph.String())
}

// part adds the input of a shot's film, as far as it is shown.
func (b *builder) part(s shot) int {
	p := b.plan
	return b.input(ffmpeg.Input{Name: sourceName(s.source), From: s.in + p.seconds(s.skip)*s.speed, Length: p.seconds(s.frames)*s.speed + margin})
}

// shots makes the pictures of a window, of one shot or of two that cross, and returns their
// label.
func (b *builder) shots() string {
	for i, s := range b.plan.shots {
		b.pictures(i, b.part(s), s)
	}
	if len(b.plan.shots) == 1 {
		return "v0"
	}
	b.addf("[v0][v1]xfade=transition=fade:duration=%.6f:offset=0[x]", b.plan.seconds(b.plan.shown))
	return "x"
}

// heard joins the sound of all shots and returns its label.
func (b *builder) heard() string {
	a := "a0"
	for i, s := range b.plan.shots {
		b.sound(i, b.part(s), s)
		if i == 0 {
			continue
		}
		if s.overlap > 0 {
			b.addf("[%s][a%d]acrossfade=d=%.6f:c1=tri:c2=tri[k%d]", a, i, b.plan.seconds(s.overlap), i)
		} else {
			b.addf("[%s][a%d]concat=n=2:v=0:a=1[k%d]", a, i, i)
		}
		a = fmt.Sprintf("k%d", i)
	}
	return a
}

// pictures makes [v i] of an input: exactly as many frames as are shown, of the size and
// the colours of the output. The last picture stays where the film ends too early.
func (b *builder) pictures(i, input int, s shot) {
	p := b.plan
	size := fmt.Sprintf("%d:%d", p.width, p.height)
	const colours = "flags=bicubic:out_color_matrix=bt709:out_range=tv"
	fit := fmt.Sprintf("scale=%s:force_original_aspect_ratio=decrease:%s,pad=%s:(ow-iw)/2:(oh-ih)/2", size, colours, size)
	if s.cover {
		fit = fmt.Sprintf("scale=%s:force_original_aspect_ratio=increase:%s,crop=%s", size, colours, size)
	}
	fadeIn, fadeOut := s.fadeIn, s.fadeOut
	if s.start == 0 {
		fadeIn = max(fadeIn, p.fadeIn)
	}
	if s.start+s.length == p.frames {
		fadeOut = max(fadeOut, p.fadeOut)
	}
	b.addf("[%d:v:0]setpts=PTS/%.6f,fps=%s:start_time=0,scale=trunc(iw*sar/2)*2:ih,setsar=1,%s,setsar=1,format=yuv420p,"+
		"tpad=stop_mode=clone:stop=-1,trim=end_frame=%d,setpts=N+%d%s,setpts=N,setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv,fps=%s[v%d]",
		input, s.speed, p.rate, fit, s.frames, s.skip, b.fades("fade", fadeIn, fadeOut, s.length), p.rate, i)
}

// sound makes [a i] of an input, exactly as long as its pictures: silence where the film
// has none.
func (b *builder) sound(i, input int, s shot) {
	p, samples := b.plan, b.samples(s.frames)
	if s.silent || !p.sources[s.source].Sound {
		b.addf("anullsrc=r=%d:cl=stereo,aformat=sample_fmts=fltp,atrim=end_sample=%d[a%d]", sampleRate, samples, i)
		return
	}
	b.addf("[%d:a:0]%s,volume=%.3fdB,apad,atrim=end_sample=%d,asetpts=N/SR/TB%s[a%d]",
		input, paced(s.speed), s.gain, samples, b.fades("afade", s.fadeIn, s.fadeOut, s.length), i)
}

// paced makes sound of any form one of ours, at this speed with its pitch kept.
func paced(speed float64) string {
	chain := fmt.Sprintf("aresample=%d:async=1:first_pts=0,aformat=sample_fmts=fltp:channel_layouts=stereo", sampleRate)
	for ; speed > 2; speed /= 2 {
		chain += ",atempo=2"
	}
	for ; speed < 0.5; speed *= 2 {
		chain += ",atempo=0.5"
	}
	if speed != 1 {
		chain += fmt.Sprintf(",atempo=%.6f", speed)
	}
	return chain
}

// fades are filters, each after a comma, that fade the first and the last frames of a
// part of this length.
func (b *builder) fades(filter string, in, out, length int) (chain string) {
	if in > 0 {
		chain += fmt.Sprintf(",%s=t=in:st=0:d=%.6f", filter, b.plan.seconds(in))
	}
	if out > 0 {
		chain += fmt.Sprintf(",%s=t=out:st=%.6f:d=%.6f", filter, b.plan.seconds(length-out), b.plan.seconds(out))
	}
	return chain
}

// samples is how many there are in some frames.
func (b *builder) samples(frames int) int {
	return int(b.plan.seconds(frames)*sampleRate + 0.5)
}

// mix adds the sounds beside the clips to theirs, [a], and returns the label of both.
func (b *builder) mix(a string) string {
	labels := "[" + a + "]"
	for i, s := range b.plan.sounds {
		n := b.input(ffmpeg.Input{Name: sourceName(s.source), From: s.in, Length: s.length + margin})
		b.addf("[%d:a:0]%s,volume=%.3fdB,atrim=end_sample=%d,asetpts=N/SR/TB,adelay=delays=%d:all=1[s%d]",
			n, paced(1), s.gain, int(s.length*sampleRate+0.5), int(s.start*1000+0.5), i)
		labels += fmt.Sprintf("[s%d]", i)
	}
	if len(b.plan.sounds) == 0 {
		return a
	}
	b.addf("%samix=inputs=%d:duration=first:dropout_transition=0:normalize=0[mix]", labels, 1+len(b.plan.sounds))
	return "mix"
}

// layers puts the overlays above v and returns the label of what is seen then.
func (b *builder) layers(v string) string {
	for i, l := range b.plan.layers {
		n := b.input(ffmpeg.Input{Name: layerName(i), Picture: l.kind})
		b.addf("[%d:v:0]format=rgba,colorchannelmixer=aa=%.4f,scale=%d:%d:flags=bicubic:out_color_matrix=bt709:out_range=tv,format=yuva420p[l%d]", n, l.opacity, l.w, l.h, i)
		b.addf("[%s][l%d]overlay=x=%d:y=%d:eof_action=repeat:format=yuv420:enable='between(n,%d,%d)'[o%d]", v, i, l.x, l.y, l.from, l.to-1, i)
		v = fmt.Sprintf("o%d", i)
	}
	return v
}

// sourceName and layerName are what inputs are called in the folder of a conversion.
func sourceName(n int) string { return fmt.Sprintf("source%d", n) }
func layerName(n int) string  { return fmt.Sprintf("layer%d", n) }

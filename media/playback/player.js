// The player of live streams: HLS by Media Source Extensions, or by the browser
// itself where it can; WebRTC (WHEP) at the touch of a button. Captions that the
// HLS has are shown at the touch of another. It loads nothing but the stream.
'use strict';
const main = document.querySelector('main'), video = document.querySelector('video');
const badge = document.querySelector('.badge'), say = document.querySelector('.say');
const stats = document.querySelector('.stats'), way = document.querySelector('.way'), cc = document.querySelector('.cc');
const pause = ms => new Promise(done => setTimeout(done, ms));
let run = 0; // counts attempts: an older one sees that it is over

const source = () => window.ManagedMediaSource || window.MediaSource;

// attributes reads NAME=value,NAME="value" of a playlist's tag.
function attributes(text) {
  const out = {};
  for (const m of text.matchAll(/([A-Z0-9-]+)=(?:"([^"]*)"|([^,]*))/g)) out[m[1]] = m[2] ?? m[3];
  return out;
}

// get fetches an address of the stream. What the gateway says of a failure is the
// error's text.
async function get(url, kind) {
  const res = await fetch(url);
  if (!res.ok) {
    const said = await res.json().catch(() => null);
    throw Object.assign(new Error(said?.error?.message || 'The stream cannot be loaded.'), { status: res.status });
  }
  return kind === 'text' ? res.text() : res.arrayBuffer();
}

// tracks reads a master playlist: the address and the codecs of each track.
function tracks(text, base) {
  const lines = text.split('\n'), at = lines.findIndex(l => l.startsWith('#EXT-X-STREAM-INF:'));
  if (at < 0) return [];
  const codecs = (attributes(lines[at]).CODECS || '').split(',').filter(Boolean);
  const isAudio = c => /^(mp4a|opus|Opus|ac-3|ec-3)/.test(c);
  const sound = lines.filter(l => l.startsWith('#EXT-X-MEDIA:')).map(attributes).find(a => a.TYPE === 'AUDIO' && a.URI);
  const url = new URL(lines.slice(at + 1).find(l => l && l[0] !== '#'), base).href;
  if (!sound) return [{ url, type: `video/mp4; codecs="${codecs.join(',')}"` }];
  return [
    { url, type: `video/mp4; codecs="${codecs.filter(c => !isAudio(c)).join(',')}"` },
    { url: new URL(sound.URI, base).href, type: `audio/mp4; codecs="${codecs.filter(isAudio).join(',')}"` },
  ];
}

// segments reads a media playlist.
function segments(text, base) {
  const out = { map: '', every: 2, list: [] };
  let n = 0;
  for (const line of text.split('\n')) {
    if (line.startsWith('#EXT-X-TARGETDURATION:')) out.every = Number(line.slice(22));
    if (line.startsWith('#EXT-X-MEDIA-SEQUENCE:')) n = Number(line.slice(22));
    if (line.startsWith('#EXT-X-MAP:')) out.map = new URL(attributes(line).URI, base).href;
    if (line && line[0] !== '#') out.list.push({ n: n++, url: new URL(line, base).href });
  }
  return out;
}

// append hands bytes to the browser and waits until it has taken them.
function append(buffer, bytes) {
  return new Promise((done, failed) => {
    buffer.addEventListener('updateend', done, { once: true });
    buffer.addEventListener('error', () => failed(new Error('The pictures cannot be decoded.')), { once: true });
    buffer.appendBuffer(bytes);
  });
}

// follow feeds one track until the attempt is over.
async function follow(track, buffer, mine) {
  let map = '', last = -1;
  while (run === mine) {
    const now = segments(await get(track.url, 'text'), track.url);
    if (now.map && now.map !== map) await append(buffer, await get(map = now.map));
    if (last < 0) last = Math.max(-1, (now.list.at(-3) || now.list[0] || { n: 0 }).n - 1);
    for (const s of now.list.filter(s => s.n > last)) {
      if (run !== mine) return;
      await append(buffer, await get(s.url));
      last = s.n;
    }
    keepUp(buffer);
    await pause(now.every * 400);
  }
}

// keepUp stays near the live edge, and drops what has been seen.
function keepUp(buffer) {
  const b = video.buffered;
  if (!b.length) return;
  const start = b.start(b.length - 1), end = b.end(b.length - 1);
  if (video.currentTime < start || end - video.currentTime > 10) video.currentTime = Math.max(start, end - 3);
  if (!buffer.updating && video.currentTime - buffer.buffered.start(0) > 60) buffer.remove(0, video.currentTime - 30);
}

// subtitles reads a master playlist: the captions that the stream has.
function subtitles(text, base) {
  return text.split('\n').filter(l => l.startsWith('#EXT-X-MEDIA:')).map(attributes).filter(a => a.TYPE === 'SUBTITLES' && a.URI)
    .map(a => ({ name: a.NAME || a.LANGUAGE, language: a.LANGUAGE, url: new URL(a.URI, base).href }));
}

// seconds reads a time of WebVTT.
const seconds = text => text.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);

// cues reads WebVTT, whose times X-TIMESTAMP-MAP puts on the clock of the pictures (RFC
// 8216, 3.5).
function cues(text) {
  const map = text.match(/^X-TIMESTAMP-MAP=(.*)$/m)?.[1] || '';
  const at = Number(map.match(/MPEGTS:(\d+)/)?.[1] || 0) / 90000 - seconds(map.match(/LOCAL:([\d:.]+)/)?.[1] || '0');
  const out = [];
  for (const block of text.replaceAll('\r', '').split(/\n{2,}/)) {
    const lines = block.split('\n').filter(Boolean), timing = lines.findIndex(l => l.includes(' --> '));
    const times = lines[timing]?.match(/^([\d:.]+) --> ([\d:.]+)/);
    if (times) out.push(Object.assign(new VTTCue(at + seconds(times[1]), at + seconds(times[2]), lines.slice(timing + 1).join('\n')), { id: lines.slice(0, timing).join(' ') }));
  }
  return out;
}

const ours = new Map(); // our text tracks by language: a browser never lets go of one

// own is the track of captions that we add cues to.
function own(s) {
  if (!ours.has(s.language)) ours.set(s.language, video.addTextTrack('subtitles', s.name, s.language));
  const track = ours.get(s.language);
  if (track.mode === 'disabled') track.mode = 'hidden'; // the cues of others cannot be read
  return track;
}

// caption adds what is new of captions to their track, and drops what has been seen. A cue
// that lasts is in each segment in which it is seen, under the same name.
async function caption(s) {
  const track = own(s), now = segments(await get(s.url, 'text'), s.url);
  const fresh = now.list.filter(piece => piece.n > (s.last ?? -1)).slice(-6);
  for (const piece of fresh) {
    for (const cue of cues(await get(piece.url, 'text'))) {
      if (!cue.id || ![...track.cues].some(c => c.id === cue.id)) track.addCue(cue);
    }
    s.last = piece.n;
  }
  for (const cue of [...track.cues]) if (cue.endTime < video.currentTime - 30) track.removeCue(cue);
}

// captions offers those that the stream has, and follows the one that is shown, until the
// attempt is over. Whatever fails, the pictures go on.
async function captions(master, url, mine) {
  const known = new Map();
  for (const track of ours.values()) for (const cue of [...track.cues || []]) track.removeCue(cue);
  for (let n = 0; run === mine; n++) {
    try {
      if (n % 15 === 0) { // they may have been begun meanwhile
        for (const s of subtitles(n ? await get(url, 'text') : master, url)) known.set(s.language, { ...known.get(s.language), ...s });
        known.forEach(own);
        chosen();
      }
      for (const s of known.values()) if (ours.get(s.language).mode === 'showing') await caption(s);
    } catch { /* they are asked for again */ }
    await pause(1000);
  }
}

// texts are the tracks that can be shown: ours, or the browser's own.
const texts = () => video.srcObject ? [] : [...video.textTracks].filter(t => t.kind === 'subtitles' || t.kind === 'captions');

// chosen has the button say which captions are shown.
function chosen() {
  const on = texts().find(t => t.mode === 'showing');
  cc.hidden = !texts().length;
  cc.setAttribute('aria-pressed', String(Boolean(on)));
  cc.textContent = on && texts().length > 1 ? 'CC ' + on.language : 'CC';
  cc.title = on ? `Captions: ${on.label || on.language}` : 'Captions: off';
}

// Each touch shows the next captions, and after the last none.
cc.onclick = () => {
  const list = texts(), next = list[list.findIndex(t => t.mode === 'showing') + 1];
  for (const t of list) t.mode = t === next ? 'showing' : 'hidden';
};
for (const event of ['change', 'addtrack', 'removetrack']) video.textTracks.addEventListener(event, chosen);

async function playHLS(mine) {
  const url = new URL(main.dataset.hls, location.href).href;
  const master = await get(url, 'text'); // says what is wrong better than a video element
  const found = tracks(master, url);
  if (!source() || !found.length || !found.every(t => source().isTypeSupported(t.type))) {
    video.src = url;
    return new Promise((_, failed) => video.addEventListener('error', () => failed(new Error('This browser cannot play the stream.')), { once: true }));
  }
  const media = new (source())();
  video.disableRemotePlayback = true;
  video.src = URL.createObjectURL(media);
  await new Promise(done => media.addEventListener('sourceopen', done, { once: true }));
  const buffers = found.map(t => media.addSourceBuffer(t.type));
  captions(master, url, mine);
  await Promise.all(found.map((t, i) => follow(t, buffers[i], mine)));
}

async function playWebRTC(mine) {
  const peer = new RTCPeerConnection();
  try {
    const stream = new MediaStream();
    peer.addTransceiver('video', { direction: 'recvonly' });
    peer.addTransceiver('audio', { direction: 'recvonly' });
    peer.ontrack = e => { stream.addTrack(e.track); video.srcObject = stream; chosen(); };
    await peer.setLocalDescription(await peer.createOffer());
    if (peer.iceGatheringState !== 'complete') await Promise.race([pause(1000), new Promise(done => {
      peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && done();
    })]);
    const res = await fetch(main.dataset.whep, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: peer.localDescription.sdp });
    if (!res.ok) throw new Error((await res.json().catch(() => null))?.error?.message || 'WebRTC is not to be had here.');
    await peer.setRemoteDescription({ type: 'answer', sdp: await res.text() });
    while (run === mine && !['failed', 'closed', 'disconnected'].includes(peer.connectionState)) await pause(500);
    if (run === mine) throw new Error('The connection is lost.');
  } finally {
    peer.close();
    video.srcObject = null;
    chosen();
  }
}

// play tries for as long as the page is open: a stream may begin, end, and begin.
async function play(mine) {
  while (run === mine) {
    try {
      await (way.textContent === 'HLS' ? playHLS(mine) : playWebRTC(mine));
    } catch (failure) {
      if (run !== mine) return;
      badge.hidden = true;
      video.removeAttribute('src');
      say.textContent = failure.message;
      if (failure.status === 401 || failure.status === 403) return; // another token is needed
    }
    await pause(2000);
  }
}

way.onclick = () => {
  way.textContent = way.textContent === 'HLS' ? 'WebRTC' : 'HLS';
  video.removeAttribute('src');
  say.textContent = 'Waiting for the stream…';
  play(++run);
};
video.addEventListener('playing', () => { badge.hidden = false; say.textContent = ''; });
video.addEventListener('loadeddata', () => {
  say.textContent = '';
  if (video.autoplay) video.play().catch(() => { video.muted = true; return video.play(); }).catch(() => {});
});
setInterval(() => {
  const b = video.buffered, q = video.getVideoPlaybackQuality();
  if (!video.videoWidth) { stats.textContent = ''; return; }
  const ahead = b.length && !video.srcObject ? ` · ${(b.end(b.length - 1) - video.currentTime).toFixed(1)} s behind` : '';
  stats.textContent = `${video.videoWidth}×${video.videoHeight}${ahead}${q.droppedVideoFrames ? ` · ${q.droppedVideoFrames} dropped` : ''}`;
}, 1000);
play(++run);

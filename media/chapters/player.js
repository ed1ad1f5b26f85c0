// The chapters of a film as a list: a click goes there, and the list shows where the film is.
'use strict';
const video = document.querySelector('video'), list = document.querySelector('ol');
const element = document.querySelector('track'), track = element.track;
track.mode = 'hidden';

// clock writes seconds as people read them.
function clock(s) {
  const part = n => String(Math.floor(n)).padStart(2, '0');
  return (s >= 3600 ? Math.floor(s / 3600) + ':' : '') + part(s / 60 % 60) + ':' + part(s % 60);
}

function show() {
  for (const cue of track.cues) {
    const item = document.createElement('li'), button = document.createElement('button'), time = document.createElement('time');
    button.type = 'button';
    button.dataset.id = cue.id;
    time.textContent = clock(cue.startTime);
    button.append(time, cue.getCueAsHTML());
    button.onclick = () => { video.currentTime = cue.startTime; video.play().catch(() => {}); };
    item.append(button);
    list.append(item);
  }
  document.querySelector('nav').hidden = !track.cues.length;
  mark();
}

function mark() {
  const now = new Set([...track.activeCues || []].map(cue => cue.id));
  for (const button of list.querySelectorAll('button')) {
    if (now.has(button.dataset.id)) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
  }
}

element.addEventListener('load', show);
track.addEventListener('cuechange', mark);
if (element.readyState === 2) show();

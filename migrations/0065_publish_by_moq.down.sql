UPDATE media_streams SET protocol = 'rtmp' WHERE protocol = 'moq';
ALTER TABLE media_streams DROP CONSTRAINT media_streams_protocol_known;
ALTER TABLE media_streams ADD CONSTRAINT media_streams_protocol_known CHECK (protocol IN ('rtmp', 'webrtc', 'srt')) NOT VALID;

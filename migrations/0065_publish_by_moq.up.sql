-- Streams may be published by MoQ. Rows are not looked at: each satisfied the
-- narrower constraint. Processes of the release before show such a stream as it is.
ALTER TABLE media_streams DROP CONSTRAINT media_streams_protocol_known;
ALTER TABLE media_streams ADD CONSTRAINT media_streams_protocol_known CHECK (protocol IN ('rtmp', 'webrtc', 'srt', 'moq')) NOT VALID;

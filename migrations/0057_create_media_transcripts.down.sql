DROP TABLE media_transcripts;

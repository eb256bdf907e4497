import { CHAT, testExamples } from './worked-example.ts'

testExamples(
  CHAT,
  `
gpt-realtime-2.1: text and audio, in, cached and out, each at its own rate
  gpt-realtime-2.1 | 1,000 input, 2,000 audio_input, 3,000 audio_cache_read, 100 output, 500 audio_output | | 103,600,000 | 1,000 × $4 + 2,000 × $32 + 3,000 × $0.40 + 100 × $24 + 500 × $64 = 4,000,000 + 64,000,000 + 1,200,000 + 2,400,000 + 32,000,000
gpt-realtime-2.1 on a regional host
  gpt-realtime-2.1 | 2,000 audio_input | regional | 70,400,000 | 2,000 × $32/M × 1.1
gpt-realtime-2.1: images in and cached
  gpt-realtime-2.1 | 1,000 image_input, 1,000 image_cache_read | | 5,500,000 | 1,000 × $5/M + 1,000 × $0.50/M
gpt-4o-audio-preview: audio in and out
  gpt-4o-audio-preview | 1,000 audio_input, 1,000 audio_output | | 120,000,000 | 1,000 × $40/M + 1,000 × $80/M
gpt-audio lists no rate for cached audio: the highest input rate, flagged
  gpt-audio | 1,000 audio_cache_read | unpriced | 32,000,000 | 1,000 × $32/M
gpt-4o-transcribe: audio and text in, text out
  gpt-4o-transcribe | 1,000 audio_input, 50 input, 100 output | | 7,125,000 | 1,000 × $6/M + 50 × $2.50/M + 100 × $10/M = 6,000,000 + 125,000 + 1,000,000
gpt-4o-mini-tts: text in, audio out
  gpt-4o-mini-tts | 100 input, 1,000 audio_output | | 12,060,000 | 100 × $0.60/M + 1,000 × $12/M = 60,000 + 12,000,000
tts-1 is paid by the character
  tts-1 | 1,000 input_characters | | 15,000,000 | 1,000 × $15/M
tts-1-hd is paid by the character, twice as much
  tts-1-hd-1106 | 1,000 input_characters | | 30,000,000 | 1,000 × $30/M
whisper-1 is paid by the hour: a minute
  whisper-1 | 60,000 audio_input_milliseconds | | 6,000,000 | $0.36 / 60
whisper-1 is paid by the hour: a millisecond
  whisper-1 | 1 audio_input_milliseconds | | 100 | $0.36 / 3,600,000 = $0.0000001
gpt-live-transcribe: an hourly price that no decimal per million would hold
  gpt-live-transcribe | 1 audio_input_milliseconds | | 283 | $1.02 / 3,600,000 = 283.33… nanodollars
gpt-live-transcribe: three milliseconds are exact
  gpt-live-transcribe | 3 audio_input_milliseconds | | 850 | 3 × $1.02 / 3,600,000
tokens reported for a model that is paid by the hour cost nothing, and are flagged
  whisper-1 | 1,000 audio_input, 10 output | unpriced | 0
time reported for a model that is paid by the token costs nothing, and is flagged
  gpt-4o-transcribe | 1,000 audio_input_milliseconds | unpriced | 0
`,
)

testExamples(
  CHAT,
  `
a model for text that lists no rate for images reads them at the rate for text
  gpt-5.6-sol | 100 input, 1,000 image_input, 10 output | | 4,600,000 | 1,100 × $4/M + 10 × $20/M; the rate for cache writes would be $5/M
and those that were cached at the rate for cached text
  gpt-5.6-sol | 100 cache_read, 1,000 image_cache_read | | 440,000 | 1,100 × $0.40/M
in a long prompt at the rates of long prompts, and in a tier at those of the tier
  gpt-5.6-sol | 272,000 input, 1 image_input | serviceTier flex | 1,088,004,000 | 272,001 × $8/M / 2
a model for text without a rate for what is cached has none for cached images either
  o1-pro | 1,000 image_input, 1,000 image_cache_read | unpriced | 300,000,000 | 2,000 × $150/M
gpt-image-2: text and images, in, cached and out
  gpt-image-2 | 100 input, 100 cache_read, 1,000 image_input, 1,000 image_cache_read, 4,000 image_output | | 130,625,000 | 100 × $5 + 100 × $1.25 + 1,000 × $8 + 1,000 × $2 + 4,000 × $30 = 500,000 + 125,000 + 8,000,000 + 2,000,000 + 120,000,000
gpt-image-1.5: text out and images out
  gpt-image-1.5 | 100 output, 1,000 image_output | | 33,000,000 | 100 × $10/M + 1,000 × $32/M
gpt-image-2 lists no rate for text out: that of images out, flagged
  gpt-image-2 | 100 output | unpriced | 3,000,000 | 100 × $30/M
images come without the name of a model, and the requested one is not a guess then
  gpt-image-2 | 1,000 image_output | modelServed null, modelAsked gpt-image-2.5-flare, endpoint /v1/images/generations | 30,000,000
    1,000 × $30/M
`,
)

testExamples(
  CHAT,
  `
text-embedding-3-small
  text-embedding-3-small | 1,000 input | | 20,000 | 1,000 × $0.02/M
text-embedding-3-large
  text-embedding-3-large | 1,000 input | | 130,000 | 1,000 × $0.13/M
text-embedding-3-large in a batch
  text-embedding-3-large | 1 input | batch | 65 | 1 × $0.065/M
moderation is free
  omni-moderation-latest | 1,000 input | | 0
`,
)

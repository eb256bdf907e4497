import { CHAT, type Example, testExamples } from './worked-example.ts'

const audio: readonly Example[] = [
  {
    says: 'gpt-realtime-2.1: text and audio, in, cached and out, each at its own rate',
    model: 'gpt-realtime-2.1',
    units: {
      input_tokens: 1_000,
      audio_input_tokens: 2_000,
      audio_cache_read_tokens: 3_000,
      output_tokens: 100,
      audio_output_tokens: 500,
    },
    // 1,000 × $4 + 2,000 × $32 + 3,000 × $0.40 + 100 × $24 + 500 × $64
    // = 4,000,000 + 64,000,000 + 1,200,000 + 2,400,000 + 32,000,000
    listNanos: 103_600_000n,
  },
  {
    says: 'gpt-realtime-2.1 on a regional host',
    model: 'gpt-realtime-2.1',
    units: { audio_input_tokens: 2_000 },
    context: { regional: true },
    // 2,000 × $32/M × 1.1
    listNanos: 70_400_000n,
  },
  {
    says: 'gpt-realtime-2.1: images in and cached',
    model: 'gpt-realtime-2.1',
    units: { image_input_tokens: 1_000, image_cache_read_tokens: 1_000 },
    // 1,000 × $5/M + 1,000 × $0.50/M
    listNanos: 5_500_000n,
  },
  {
    says: 'gpt-4o-audio-preview: audio in and out',
    model: 'gpt-4o-audio-preview',
    units: { audio_input_tokens: 1_000, audio_output_tokens: 1_000 },
    // 1,000 × $40/M + 1,000 × $80/M
    listNanos: 120_000_000n,
  },
  {
    says: 'gpt-audio lists no rate for cached audio: the dearest input rate, flagged',
    model: 'gpt-audio',
    units: { audio_cache_read_tokens: 1_000 },
    // 1,000 × $32/M
    listNanos: 32_000_000n,
    unpriced: true,
  },
  {
    says: 'gpt-4o-transcribe: audio and text in, text out',
    model: 'gpt-4o-transcribe',
    units: { audio_input_tokens: 1_000, input_tokens: 50, output_tokens: 100 },
    // 1,000 × $6/M + 50 × $2.50/M + 100 × $10/M = 6,000,000 + 125,000 + 1,000,000
    listNanos: 7_125_000n,
  },
  {
    says: 'gpt-4o-mini-tts: text in, audio out',
    model: 'gpt-4o-mini-tts',
    units: { input_tokens: 100, audio_output_tokens: 1_000 },
    // 100 × $0.60/M + 1,000 × $12/M = 60,000 + 12,000,000
    listNanos: 12_060_000n,
  },
  {
    says: 'tts-1 is paid by the character',
    model: 'tts-1',
    units: { input_characters: 1_000 },
    // 1,000 × $15/M
    listNanos: 15_000_000n,
  },
  {
    says: 'tts-1-hd is paid by the character, twice as much',
    model: 'tts-1-hd-1106',
    units: { input_characters: 1_000 },
    // 1,000 × $30/M
    listNanos: 30_000_000n,
  },
  {
    says: 'whisper-1 is paid by the hour: a minute',
    model: 'whisper-1',
    units: { audio_input_milliseconds: 60_000 },
    // $0.36 / 60
    listNanos: 6_000_000n,
  },
  {
    says: 'whisper-1 is paid by the hour: a millisecond',
    model: 'whisper-1',
    units: { audio_input_milliseconds: 1 },
    // $0.36 / 3,600,000 = $0.0000001
    listNanos: 100n,
  },
  {
    says: 'gpt-live-transcribe: an hourly price that no decimal per million would hold',
    model: 'gpt-live-transcribe',
    units: { audio_input_milliseconds: 1 },
    // $1.02 / 3,600,000 = 283.33… nanodollars
    listNanos: 283n,
  },
  {
    says: 'gpt-live-transcribe: three milliseconds are exact',
    model: 'gpt-live-transcribe',
    units: { audio_input_milliseconds: 3 },
    // 3 × $1.02 / 3,600,000
    listNanos: 850n,
  },
  {
    says: 'tokens reported for a model that is paid by the hour cost nothing, and are flagged',
    model: 'whisper-1',
    units: { audio_input_tokens: 1_000, output_tokens: 10 },
    listNanos: 0n,
    unpriced: true,
  },
  {
    says: 'time reported for a model that is paid by the token costs nothing, and is flagged',
    model: 'gpt-4o-transcribe',
    units: { audio_input_milliseconds: 1_000 },
    listNanos: 0n,
    unpriced: true,
  },
]

const images: readonly Example[] = [
  {
    says: 'a model for text that lists no rate for images reads them at the rate for text',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 100, image_input_tokens: 1_000, output_tokens: 10 },
    // 1,100 × $4/M + 10 × $20/M; the rate for cache writes would be $5/M
    listNanos: 4_600_000n,
  },
  {
    says: 'and those that were cached at the rate for cached text',
    model: 'gpt-5.6-sol',
    units: { cache_read_tokens: 100, image_cache_read_tokens: 1_000 },
    // 1,100 × $0.40/M
    listNanos: 440_000n,
  },
  {
    says: 'in a long prompt at the rates of long prompts, and in a tier at those of the tier',
    model: 'gpt-5.6-sol',
    units: { input_tokens: 272_000, image_input_tokens: 1 },
    said: { serviceTier: 'flex' },
    // 272,001 × $8/M / 2
    listNanos: 1_088_004_000n,
  },
  {
    says: 'a model for text without a rate for what is cached has none for cached images either',
    model: 'o1-pro',
    units: { image_input_tokens: 1_000, image_cache_read_tokens: 1_000 },
    // 2,000 × $150/M
    listNanos: 300_000_000n,
    unpriced: true,
  },
  {
    says: 'gpt-image-2: text and images, in, cached and out',
    model: 'gpt-image-2',
    units: {
      input_tokens: 100,
      cache_read_tokens: 100,
      image_input_tokens: 1_000,
      image_cache_read_tokens: 1_000,
      image_output_tokens: 4_000,
    },
    // 100 × $5 + 100 × $1.25 + 1,000 × $8 + 1,000 × $2 + 4,000 × $30
    // = 500,000 + 125,000 + 8,000,000 + 2,000,000 + 120,000,000
    listNanos: 130_625_000n,
  },
  {
    says: 'gpt-image-1.5: text out and images out',
    model: 'gpt-image-1.5',
    units: { output_tokens: 100, image_output_tokens: 1_000 },
    // 100 × $10/M + 1,000 × $32/M
    listNanos: 33_000_000n,
  },
  {
    says: 'gpt-image-2 lists no rate for text out: that of images out, flagged',
    model: 'gpt-image-2',
    units: { output_tokens: 100 },
    // 100 × $30/M
    listNanos: 3_000_000n,
    unpriced: true,
  },
  {
    says: 'images come without the name of a model, and the requested one is not a guess then',
    model: 'gpt-image-2',
    units: { image_output_tokens: 1_000 },
    said: { modelServed: null },
    context: { modelAsked: 'gpt-image-2.5-flare', endpoint: '/v1/images/generations' },
    // 1,000 × $30/M
    listNanos: 30_000_000n,
  },
]

const embeddings: readonly Example[] = [
  {
    says: 'text-embedding-3-small',
    model: 'text-embedding-3-small',
    units: { input_tokens: 1_000 },
    // 1,000 × $0.02/M
    listNanos: 20_000n,
  },
  {
    says: 'text-embedding-3-large',
    model: 'text-embedding-3-large',
    units: { input_tokens: 1_000 },
    // 1,000 × $0.13/M
    listNanos: 130_000n,
  },
  {
    says: 'text-embedding-3-large in a batch',
    model: 'text-embedding-3-large',
    units: { input_tokens: 1 },
    context: { batch: true },
    // 1 × $0.065/M
    listNanos: 65n,
  },
  {
    says: 'moderation is free',
    model: 'omni-moderation-latest',
    units: { input_tokens: 1_000 },
    listNanos: 0n,
  },
]

testExamples(CHAT, [...audio, ...images, ...embeddings])

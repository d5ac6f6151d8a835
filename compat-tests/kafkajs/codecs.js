// The codecs that kafkajs has no code for, as its CompressionCodecs wants them: a function that
// gives an object with `compress(encoder)` and `decompress(buffer)`.

import { Zstd } from '@hpcc-js/wasm-zstd'
import * as fzstd from 'fzstd'
import kafkajs from 'kafkajs'
import snappy from 'kafkajs-snappy'
import lz4 from 'lz4-napi'

const { CompressionCodecs, CompressionTypes } = kafkajs

export const codecs = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

CompressionCodecs[CompressionTypes.Snappy] = snappy

CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer),
})

// wasm-zstd reads only frames that tell their content size, which most producers' frames do not:
// hence the second package.
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await Zstd.load()).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(fzstd.decompress(buffer)),
})

"""A DataFrame to tensors and back: batches for training, keys for look-ups, SQL over both.

pip install "safetensors-spark[spark]" && python spark_round_trip.py
"""

from pyspark.sql import SparkSession

import safetensors_spark as sts
from safetensors_spark.dataset import open_dataset

spark = sts.configure(SparkSession.builder.master("local[2]")).getOrCreate()
df = spark.sql("SELECT id, transform(sequence(0, 7), n -> float(id + n)) AS features, id % 3 AS label FROM range(1000)")

batches = df.select("features", "label").write.format("safetensors").mode("overwrite")
batches.options(batch_size=256, dtype='{"features": "BF16"}').save("batches")
print(f"without Spark: {open_dataset('batches')['features'].shape} {open_dataset('batches')['features'].dtype}")

keyed = df.selectExpr("concat('row-', id) AS key", "features").write.format("safetensors").mode("overwrite")
keyed.options(name_col="key", dtype="F32", generate_index=True).save("keyed")

rows = spark.read.format("safetensors").option("layout", "rows").option("decode", "true").load("batches")
rows.groupBy("label").count().orderBy("label").show()
keys = spark.read.format("safetensors").option("layout", "long").load("keyed")
keys.where("tensor_key = 'row-7'").selectExpr("tensor_key", "st_to_array(tensor) AS x").show(truncate=False)
spark.stop()
